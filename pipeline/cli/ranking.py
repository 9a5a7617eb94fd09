"""Rankers on the command line: training on candidates, one choice per group, and how good the choices are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gramline.pipeline.cli.terminal.output import count, duration, say, say_json, say_pairs
from gramline.pipeline.errors import InputError

if TYPE_CHECKING:
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.gram.stored import StoredGram
    from gramline.pipeline.models.ranker import Ranker


def trained_ranker(learner: Any, gram: StoredGram, candidates: Sequence[str]) -> tuple[Ranker, dict[str, Any]]:
    """The ranker, and what its forest is worth."""
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.models.ranker_training import fit_ranker, forest_speed

    if not candidates:
        raise InputError(
            f"{learner.name} learns from groups of candidates; give the corpus of the Gram matrix, which has them in "
            "its columns, as --candidates CORPUS"
        )
    ranker = fit_ranker(learner, gram, [Corpus.load(path) for path in candidates])
    speed = forest_speed(ranker, learner, gram.row_corpus)
    return ranker, {} if speed is None else {"times_faster": speed.ratio, "seconds_per_candidate": speed.forest_seconds}


def say_forest(result: dict[str, Any]) -> None:
    """How much smaller and faster the forest is than the sum over its trees."""
    forest = result["forest"]
    if forest is None:
        return
    faster = f", {result['times_faster']:.1f} times faster than their sum" if "times_faster" in result else ""
    say(
        f"{count(forest['trees'], 'tree')} of {count(forest['nodes'], 'node')} kept as one forest of "
        f"{count(forest['subtrees'], 'subtree')}: {forest['ratio']:.1f} times smaller{faster}"
    )


def predict_choices(model: str, corpus: str, output: str | None, layout: str | None, as_json: bool) -> None:
    """One candidate per group, as JSON lines."""
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.models.predictions import write_lines
    from gramline.pipeline.models.ranker import Ranker

    if layout == "conll" or (layout is None and output and Path(output).suffix in (".conll", ".txt", ".tsv")):
        raise InputError("chosen candidates are whole structures, which do not fit into columns; write them as jsonl")
    begin = perf_counter()
    candidates = Corpus.load(corpus)
    chosen = Ranker.load(model).choose(candidates)
    records = list(_records(candidates, chosen))
    seconds = perf_counter() - begin
    result = {
        "model": model,
        "corpus": corpus,
        "output": output,
        "groups": len(chosen),
        "candidates": len(candidates),
        "seconds": seconds,
    }
    if output is not None:
        write_lines((json.dumps(record, ensure_ascii=False) for record in records), output)
    if as_json:
        say_json(result if output is not None else result | {"predictions": records})
    elif output is None:
        for record in records:
            say(json.dumps(record, ensure_ascii=False))
    else:
        say(
            f"one of {count(len(candidates), 'candidate')} chosen in each of {count(len(chosen), 'group')}, "
            f"{duration(seconds)}: {output}"
        )


def _records(corpus: Corpus, chosen: Sequence[int]) -> Iterator[dict[str, Any]]:
    from gramline.pipeline.candidates.columns import Groups

    groups = Groups.of(corpus)
    picked = corpus.select(members[k] for members, k in zip(groups.members, chosen, strict=True))
    trees = picked.trees if picked.kind == "parses" else None
    for number, (group, candidate) in enumerate(zip(groups.names, chosen, strict=True)):
        content: dict[str, Any] = {"tree": trees[number]} if trees else {"tokens": picked.tokens[number]}
        yield {"id": picked.ids[number], "group": group, "candidate": candidate, **content}


def evaluate_choices(source: str, corpus: str, gold: str | None, as_json: bool) -> None:
    """The parse score of a ranker, or of choices in a file, beside the first and the best candidates."""
    from gramline.pipeline.candidates.columns import Groups, ranking_score
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.models.ranker import Ranker

    candidates = Corpus.load(corpus)
    groups = Groups.of(candidates)
    is_file = Path(source).is_file()
    chosen = _read_choices(source, groups) if is_file else Ranker.load(source).choose(candidates)
    score = ranking_score(candidates, chosen, [] if gold is None else _missing(candidates, groups, gold))
    if as_json:
        say_json({"source": source, "corpus": corpus, "gold": gold} | score.to_dict())
        return
    said = f"{count(score.n_groups, 'group')}, {count(score.n_candidates, 'candidate')}"
    say(said if gold is not None else f"{said}; a sentence without candidates is not counted (see --gold)")
    say()
    say_pairs(
        {
            "score": f"{score.chosen:.4f}",
            "of the first candidates": f"{score.first:.4f}",
            "of the best candidates": f"{score.oracle:.4f}",
            "error reduction": f"{score.error_reduction:.1%}",
            "best candidate chosen": f"{score.best_chosen:.4f}",
        }
    )


def holds_choices(path: str) -> bool:
    """Whether a file holds chosen candidates, not labels."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "candidate" in first


def _read_choices(path: str, groups: Any) -> list[int]:
    found: dict[Any, int] = {}
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            found[record["group"]] = int(record["candidate"])
        except (ValueError, KeyError, TypeError):
            raise InputError(f'{path}, line {number}: a choice is an object with a "group" and a "candidate"') from None
    chosen = []
    for name, members in zip(groups.names, groups.members, strict=True):
        if not 0 <= found.get(name, -1) < len(members):
            raise InputError(f"{path} has no choice among the {len(members)} candidates of group {name!r}")
        chosen.append(found[name])
    return chosen


def _missing(candidates: Corpus, groups: Any, gold: str) -> list[float]:
    """Weights of the sentences of a treebank that have no candidate; groups are numbers of its trees."""
    from gramline.pipeline.candidates.score import constituents
    from gramline.pipeline.cli.candidates import read_trees
    from gramline.pipeline.corpus.parses import words

    trees = read_trees(gold)
    first = candidates.select(members[0] for members in groups.members).trees
    for name, tree in zip(groups.names, first, strict=True):
        if not isinstance(name, int) or not 0 <= name < len(trees) or words(trees[name]) != words(tree):
            raise InputError(f"group {name!r} is not a sentence of {gold}; give the trees that the candidates are for")
    there = set(groups.names)
    return [float(constituents(tree).total()) for number, tree in enumerate(trees) if number not in there]
