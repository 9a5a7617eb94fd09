"""`gramline predict`: labels of new structures, as JSON lines or CoNLL columns."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from gramline.pipeline.cli.ranking import predict_choices
from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say, say_json, say_notes
from gramline.pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HELP = """Label the structures of CORPUS with MODEL, or choose one candidate of each group with a ranker.

Predictions are JSON lines {"id", "tokens", "labels"}, or CoNLL columns (token, label) with a blank line after each
structure; the name of the output file decides (.jsonl; .conll, .txt or .tsv), or --format. Chosen candidates are JSON
lines {"id", "group", "candidate", "tree"}, candidates counted from 0. With --probabilities every JSON line has one
object {label: probability} per position as well.

\b
Example:
  gramline predict model.zarr new.parquet -o predictions.jsonl"""


@click.command(help=HELP, short_help="Label new structures.")
@click.argument("model")
@click.argument("corpus")
@click.option("-o", "--output", metavar="FILE", callback=new_file, help="Where to write [default: stdout].")
@click.option("--format", "layout", type=click.Choice(["jsonl", "conll"]), help="How to write.")
@click.option("--block-rows", type=click.IntRange(1), help="Positions handled at a time.")
@click.option("--probabilities", is_flag=True, help="Of all labels, as a Gaussian-process labeler knows them.")
@json_option
def predict(
    model: str,
    corpus: str,
    output: str | None,
    layout: str | None,
    block_rows: int | None,
    probabilities: bool,
    as_json: bool,
) -> None:
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.models.model import Model
    from gramline.pipeline.models.predictions import Predictions, write_predictions
    from gramline.pipeline.models.ranker import is_ranker

    chosen = layout or ("conll" if output and Path(output).suffix in (".conll", ".txt", ".tsv") else "jsonl")
    if probabilities and chosen != "jsonl":
        raise InputError("--probabilities are written as JSON lines only; give --format jsonl, or leave them out")
    if is_ranker(model):
        if probabilities:
            raise InputError(f"{model} is a ranker, which knows no probabilities; leave --probabilities out")
        predict_choices(model, corpus, output, layout, as_json)
        return
    begin = perf_counter()
    trained = Model.load(model)
    structures = Corpus.load(corpus)
    known = None
    if probabilities:
        labels, table = trained.predict_with_proba(structures, block_rows=block_rows)
        known = by_label(structures.by_structure(table), trained.label_names)
    else:
        labels = trained.predict(structures, block_rows=block_rows)
    found = Predictions(structures.ids, structures.tokens, labels, known)
    seconds = perf_counter() - begin
    result = {
        "model": model,
        "corpus": corpus,
        "output": output,
        "structures": len(structures),
        "positions": structures.n_positions,
        "seconds": seconds,
    }
    say_notes(trained.notes)
    if output is not None:
        write_predictions(found, output, chosen)
    if as_json:
        say_json(result if output is not None else result | {"predictions": list(found.records())})
    elif output is None:
        for line in found.lines(chosen):
            say(line)
    else:
        say(
            f"{count(result['structures'], 'structure')} and {count(result['positions'], 'position')} labeled in "  # type: ignore[arg-type]
            f"{duration(seconds)}: {output}"
        )


def by_label(tables: list[NDArray[np.float64]], names: tuple[str, ...]) -> list[list[dict[str, float]]]:
    """{label: probability} at every position of every structure."""
    return [[dict(zip(names, row, strict=True)) for row in table.tolist()] for table in tables]
