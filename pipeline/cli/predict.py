"""`gramline predict`: labels of new structures, as JSON lines or CoNLL columns."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import click

from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say_notes
from gramline.pipeline.cli.terminal.result import TextRecords, say_predictions
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.model import Model, load_trained
from gramline.pipeline.models.predictions import Predictions, by_label

HELP = """Label the structures of CORPUS with MODEL, or choose one candidate of each group with a ranker.

Predictions are JSON lines {"id", "tokens", "labels"}, or CoNLL columns (token, label) with a blank line after each
structure; the name of the output file decides (.jsonl; .conll, .txt or .tsv), or --format. Chosen candidates are JSON
lines {"id", "group", "candidate", "tree"}, candidates counted from 0. With --probabilities every JSON line has one
object {label: probability} per position as well.

\b
Example:
  gramline predict model.zarr new.parquet -o predictions.jsonl"""


@click.command(help=HELP)
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
    chosen = layout or ("conll" if output and Path(output).suffix in (".conll", ".txt", ".tsv") else "jsonl")
    if probabilities and chosen != "jsonl":
        raise InputError("--probabilities are written as JSON lines only; give --format jsonl, or leave them out")
    begin = perf_counter()
    trained = load_trained(model)
    if not isinstance(trained, Model):
        if probabilities:
            raise InputError(f"{model} is a ranker, which knows no probabilities; leave --probabilities out")
        from gramline.pipeline.cli.ranking import predict_choices  # parse kernels load for rankers only

        predict_choices(trained, model, corpus, output, layout, as_json)
        return
    structures = Corpus.load(corpus)
    table_by_label = None
    if probabilities:
        labels, table = trained.predict_with_proba(structures, block_rows=block_rows)
        table_by_label = by_label(structures.by_structure(table), trained.label_names)
    else:
        labels = trained.predict(structures, block_rows=block_rows)
    predictions = Predictions(structures.ids, structures.tokens, labels, table_by_label)
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
    done = f"{count(len(structures), 'structure')} and {count(structures.n_positions, 'position')} labeled"
    texts = TextRecords(predictions.records(), predictions.lines(chosen))
    say_predictions(result, texts, f"{done} in {duration(seconds)}", as_json)
