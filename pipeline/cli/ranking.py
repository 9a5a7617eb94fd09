"""Rankers on the command line: training on candidates, one choice per group, and how good the choices are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from gramline.pipeline.candidates.columns import Groups, ranking_score
from gramline.pipeline.candidates.corpus import read_trees
from gramline.pipeline.cli.terminal.output import count, duration, say, say_json, say_pairs
from gramline.pipeline.cli.terminal.result import TextRecords, say_predictions
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.predictions import choice_records, read_choices, weights_without_candidates
from gramline.pipeline.models.ranker import Ranker, fit_ranker, forest_speed


def trained_ranker(learner: Any, gram: StoredGram, candidates: Sequence[str]) -> tuple[Ranker, dict[str, Any]]:
    """The ranker, and what its forest is worth."""
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


def predict_choices(
    ranker: Ranker, model: str, corpus: str, output: str | None, layout: str | None, as_json: bool
) -> None:
    """One candidate per group, as JSON lines."""
    if layout == "conll" or (layout is None and output and Path(output).suffix in (".conll", ".txt", ".tsv")):
        raise InputError("chosen candidates are whole structures, which do not fit into columns; write them as jsonl")
    begin = perf_counter()
    candidates = Corpus.load(corpus)
    chosen = ranker.choose(candidates)
    records = list(choice_records(candidates, chosen))
    seconds = perf_counter() - begin
    result = {
        "model": model,
        "corpus": corpus,
        "output": output,
        "groups": len(chosen),
        "candidates": len(candidates),
        "seconds": seconds,
    }
    done = f"one of {count(len(candidates), 'candidate')} chosen in each of {count(len(chosen), 'group')}"
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    say_predictions(result, TextRecords(records, lines), f"{done}, {duration(seconds)}", as_json)


def evaluate_choices(ranker: Ranker | None, source: str, corpus: str, gold: str | None, as_json: bool) -> None:
    """The parse score of a ranker, or of choices in the file `source`, beside the first and the best candidates."""
    candidates = Corpus.load(corpus)
    groups = Groups.of(candidates)
    chosen = read_choices(source, groups) if ranker is None else ranker.choose(candidates)
    missing = [] if gold is None else weights_without_candidates(candidates, groups, read_trees(gold), gold)
    score = ranking_score(candidates, chosen, missing)
    if as_json:
        say_json({"source": source, "corpus": corpus, "gold": gold} | score.to_dict())
        return
    sizes = f"{count(score.n_groups, 'group')}, {count(score.n_candidates, 'candidate')}"
    say(sizes if gold is not None else f"{sizes}; a sentence without candidates is not counted (see --gold)")
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
