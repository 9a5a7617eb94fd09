"""`gramline evaluate`: how good a model, or a file of predictions, is on a labeled corpus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gramline.learners.metrics import Evaluation, Score
from gramline.learners.metrics import evaluate as compare
from gramline.pipeline.candidates.columns import Groups, RankingScore, ranking_score
from gramline.pipeline.candidates.corpus import read_trees
from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.job_file.file import OptionValues
from gramline.pipeline.cli.prediction import Prediction
from gramline.pipeline.cli.terminal.bill import Bill, cost_option
from gramline.pipeline.cli.terminal.output import count, json_option, say, say_json, say_notes, say_pairs, say_table
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import FORMATS
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_path
from gramline.pipeline.models.choices import holds_choices, read_choices, weights_without_candidates
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.predictions import labels_in_file, require_known_labels
from gramline.pipeline.models.trained import load_trained

HELP = """Compare predicted labels with those of CORPUS.

SOURCE is a model, or a file of predictions (JSON lines or CoNLL columns). CORPUS is a corpus, or a file in any format
that `gramline corpus import` reads: a model describes its words as those it learned from. Precision, recall and F1 are
over all labels but the dummy one, token by token and span by span (IOB2).

For a ranker, CORPUS holds candidates: the parse score of the chosen ones stands beside that of the first (the most
probable) and of the best ones. With --gold, sentences without a candidate count as well, with a score of 0.

\b
Example:
  gramline evaluate model.zarr test.conll
  gramline evaluate predictions.jsonl test.parquet --json
  gramline evaluate ranker.zarr candidates.parquet --gold new.trees"""


@click.command(help=HELP)
@click.argument("source")
@click.argument("corpus")
@click.option("--dummy", default="O", show_default=True, metavar="LABEL", help="Label of positions that carry nothing.")
@click.option("--no-dummy", is_flag=True, help="Every label counts.")
@click.option("--allow-unknown-labels", is_flag=True, help="Count labels that the model does not know as mistakes.")
@click.option("--block-rows", type=click.IntRange(1), help="Positions handled at a time.")
@click.option("--input-format", type=click.Choice(list(FORMATS)), help="Of CORPUS [default: by its name].")
@click.option("--gold", metavar="TREES", help="Of a ranker: the trees that the candidates are for.")
@cluster_options
@cost_option
@json_option
def evaluate(
    source: str,
    corpus: str,
    dummy: str,
    no_dummy: bool,
    allow_unknown_labels: bool,
    block_rows: int | None,
    input_format: Any,
    gold: str | None,
    given: OptionValues,
    bill: Bill,
    as_json: bool,
) -> None:
    require_path(source, "a model that `gramline fit` wrote, or of a file of predictions")
    where = Prediction(source, given, block_rows)
    is_file = Path(source).is_file()
    trained = None if is_file else load_trained(source)
    if (trained is None and holds_choices(source)) or not isinstance(trained, Model | None):
        where.say_unused()
        candidates = Corpus.read(corpus, format=input_format)
        groups = Groups.of(candidates)
        chosen = read_choices(source, groups) if trained is None else trained.choose(candidates)
        missing = [] if gold is None else weights_without_candidates(candidates, groups, read_trees(gold), gold)
        score = ranking_score(candidates, chosen, missing)
        say_notes(score.notes(corpus))
        if as_json:
            say_json({"source": source, "corpus": corpus, "gold": gold} | score.to_dict() | bill.result())
        else:
            say_ranking(score, gold is not None)
            bill.say()
        return
    if gold is not None:
        raise InputError("--gold names the trees behind candidates, but this is not a ranker; leave it out")
    right = Corpus.read(corpus, format=input_format) if trained is None else trained.read(corpus, input_format)
    if not any(right.label_counts().values()):
        advice = "give a file that has the right labels, or label this one with `gramline predict`"
        raise InputError(f"{corpus} has no labels to compare with", advice=advice)
    if trained is None:
        where.say_unused()
        predicted: list[list[str | None]] = labels_in_file(source, right)
    else:
        if not allow_unknown_labels:
            require_known_labels(right, trained.label_names)
        predicted = [list(labels) for labels in where.labels(trained, right.without_labels())]
        say_notes(trained.notes)
    result = compare(right.labels, predicted, dummy=None if no_dummy else dummy)
    if as_json:
        say_json({"source": source, "corpus": corpus} | result.to_dict() | bill.result())
    else:
        say_evaluation(result)
        bill.say()


def say_evaluation(result: Evaluation) -> None:
    """The totals, then a table per label and one per type of span."""
    say(f"{count(result.n_structures, 'structure')}, {count(result.n_positions, 'position')}")
    say()
    say_pairs(
        {
            "token accuracy": f"{result.accuracy:.4f}",
            "Hamming loss": f"{result.hamming_loss:.4f}",
            "whole structures right": f"{result.exact_match:.4f}",
        }
    )
    dummy = "all labels" if result.dummy is None else f"all but {result.dummy}"
    _say_scores("tokens", dict(result.by_label), {dummy: result.tokens})
    _say_scores("spans", dict(result.by_span_type), {"all spans": result.spans})


def _say_scores(title: str, scores: Mapping[str, Score], totals: Mapping[str, Score]) -> None:
    rows = [
        (name, f"{s.precision:.4f}", f"{s.recall:.4f}", f"{s.f1:.4f}", f"{s.gold:,}", f"{s.predicted:,}")
        for name, s in (scores | totals).items()  # type: ignore[operator]
    ]
    say_table((title, "precision", "recall", "F1", "gold", "found"), rows)


def say_ranking(score: RankingScore, has_gold: bool) -> None:
    """The parse score of the chosen candidates beside those of the first and of the best ones."""
    sizes = f"{count(score.n_groups, 'group')}, {count(score.n_candidates, 'candidate')}"
    say(sizes if has_gold else f"{sizes}; a sentence without candidates is not counted (see --gold)")
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
