"""`gramline predict`: labels of new structures, as JSON lines or CoNLL columns; or chosen candidates."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter

import click

from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say, say_json, say_notes
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.model import Model, load_trained
from gramline.pipeline.models.predictions import Predictions, by_label, choice_records, write_lines

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
    layout = layout or ("conll" if output and Path(output).suffix in (".conll", ".txt", ".tsv") else "jsonl")
    if probabilities and layout != "jsonl":
        raise InputError("--probabilities are written as JSON lines only; give --format jsonl, or leave them out")
    begin = perf_counter()
    trained = load_trained(model)
    if isinstance(trained, Model):
        structures = Corpus.load(corpus)
        sizes = {"structures": len(structures), "positions": structures.n_positions}
        done = f"{count(len(structures), 'structure')} and {count(structures.n_positions, 'position')} labeled in "
        predictions = _labels(trained, structures, block_rows, probabilities)
        records, lines = predictions.records(), predictions.lines(layout)
    else:
        if probabilities:
            raise InputError(f"{model} is a ranker, which knows no probabilities; leave --probabilities out")
        if layout == "conll":
            raise InputError(
                "chosen candidates are whole structures, which do not fit into columns; write them as jsonl"
            )
        candidates = Corpus.load(corpus)
        choices = list(choice_records(candidates, trained.choose(candidates)))
        sizes = {"groups": len(choices), "candidates": len(candidates)}
        done = f"one of {count(len(candidates), 'candidate')} chosen in each of {count(len(choices), 'group')}, "
        records, lines = iter(choices), (json.dumps(record, ensure_ascii=False) for record in choices)
    seconds = perf_counter() - begin
    result = {"model": model, "corpus": corpus, "output": output, **sizes, "seconds": seconds}
    if output is not None:
        write_lines(lines, output)
    if as_json:
        say_json(result if output is not None else result | {"predictions": list(records)})
        return
    for line in lines if output is None else [f"{done}{duration(seconds)}: {output}"]:
        say(line)


def _labels(model: Model, structures: Corpus, block_rows: int | None, probabilities: bool) -> Predictions:
    by_position = None
    if probabilities:
        labels, table = model.predict_with_proba(structures, block_rows=block_rows)
        by_position = by_label(structures.by_structure(table), model.label_names)
    else:
        labels = model.predict(structures, block_rows=block_rows)
    say_notes(model.notes)
    return Predictions(structures.ids, structures.tokens, labels, by_position)
