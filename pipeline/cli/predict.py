"""`gramline predict`: labels of new structures in the format they came in, or chosen candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import click

from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say, say_json, say_notes
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import FORMATS
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.model import Model, load_trained
from gramline.pipeline.models.predictions import Predictions, by_label, choice_records, chosen_trees, write_lines
from gramline.pipeline.models.write_back import (
    LAYOUTS,
    Layout,
    annotated_lines,
    layout_of_input,
    layout_of_output,
    with_predictions,
)

HELP = """Label the structures of CORPUS with MODEL, or choose one candidate of each group with a ranker.

CORPUS is a corpus, or a file in any format that `gramline corpus import` reads: the model describes its words as those
it learned from. A file in columns comes back with one column more, the predicted label; CoNLL-U with Predicted= in
MISC; JSON lines with the key "predicted". A corpus gives JSON lines {"id", "tokens", "labels"}. The name of the output
or --format chooses another format. Chosen candidates are JSON lines {"id", "group", "candidate", "tree"}, candidates
counted from 0, or brackets. With --probabilities JSON lines have one object {label: probability} per position as well,
other formats the probability of the label.

\b
Example:
  gramline predict model.zarr new.conll -o labeled.conll
  gramline predict model.zarr new.parquet -o predictions.jsonl"""


@click.command(help=HELP)
@click.argument("model")
@click.argument("corpus")
@click.option("-o", "--output", metavar="FILE", callback=new_file, help="Where to write [default: stdout].")
@click.option("--format", "layout", type=click.Choice(LAYOUTS), help="How to write [default: as CORPUS is written].")
@click.option("--input-format", type=click.Choice(list(FORMATS)), help="Of CORPUS [default: by its name].")
@click.option("--block-rows", type=click.IntRange(1), help="Positions handled at a time.")
@click.option("--probabilities", is_flag=True, help="Of all labels, as a Gaussian-process labeler knows them.")
@json_option
def predict(
    model: str,
    corpus: str,
    output: str | None,
    layout: Layout | None,
    input_format: Any,
    block_rows: int | None,
    probabilities: bool,
    as_json: bool,
) -> None:
    begin = perf_counter()
    trained = load_trained(model)
    if isinstance(trained, Model):
        source = input_format or layout_of_input(corpus, trained.recipe)
        layout = layout or layout_of_output(output, source)
        _require_layout_of_labels(layout, output)
        structures = trained.read(corpus, input_format)
        sizes = {"structures": len(structures), "positions": structures.n_positions}
        done = f"{count(len(structures), 'structure')} and {count(structures.n_positions, 'position')} labeled in "
        predictions = _labels(trained, structures, block_rows, probabilities)
        records: Iterator[dict[str, Any]] = predictions.records()
        lines: Iterator[str] = iter(())
        if layout == "parquet" and output is not None:
            structures = with_predictions(structures, predictions)
        elif output is not None or not as_json:
            lines = annotated_lines(corpus, source, layout, predictions, structures)
    else:
        if probabilities:
            raise InputError(f"{model} is a ranker, which knows no probabilities; leave --probabilities out")
        layout = layout or layout_of_output(output, "jsonl")
        if layout not in ("jsonl", "brackets"):
            raise InputError(
                "chosen candidates are whole structures, which do not fit into columns; write them as jsonl"
            )
        structures = Corpus.read(corpus, format=input_format)
        chosen = trained.choose(structures)
        choices = list(choice_records(structures, chosen))
        sizes = {"groups": len(choices), "candidates": len(structures)}
        done = f"one of {count(len(structures), 'candidate')} chosen in each of {count(len(choices), 'group')}, "
        records = iter(choices)
        lines = (
            chosen_trees(structures, chosen)
            if layout == "brackets"
            else (json.dumps(record, ensure_ascii=False) for record in choices)
        )
    seconds = perf_counter() - begin
    result = {"model": model, "corpus": corpus, "output": output, **sizes, "seconds": seconds}
    if output is not None:
        structures.save(output) if layout == "parquet" else write_lines(lines, output)
    if as_json:
        say_json(result if output is not None else result | {"predictions": list(records)})
        return
    for line in lines if output is None else [f"{done}{duration(seconds)}: {output}"]:
        say(line)


def _require_layout_of_labels(layout: Layout, output: str | None) -> None:
    if layout == "brackets":
        raise InputError("labels of positions do not fit into brackets", advice="write them as jsonl")
    if layout == "parquet" and output is None:
        raise InputError("a corpus cannot be written to stdout", advice="say where to write it (-o FILE)")


def _labels(model: Model, structures: Corpus, block_rows: int | None, probabilities: bool) -> Predictions:
    by_position = None
    if probabilities:
        labels, table = model.predict_with_proba(structures, block_rows=block_rows)
        by_position = by_label(structures.by_structure(table), model.label_names)
    else:
        labels = model.predict(structures, block_rows=block_rows)
    say_notes(model.notes)
    return Predictions(structures.ids, structures.tokens, labels, by_position)
