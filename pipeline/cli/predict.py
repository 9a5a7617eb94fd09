"""`gramline predict`: labels of new structures in the format they came in, or chosen candidates."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click

from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.job_file.file import OptionValues
from gramline.pipeline.cli.prediction import Prediction
from gramline.pipeline.cli.terminal.bill import Bill, cost_option
from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_json,
    say_next,
    say_notes,
    short_path,
)
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import FORMATS
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.predictions import Predictions, by_label, write_lines
from gramline.pipeline.models.stream import LabeledStream, decoded
from gramline.pipeline.models.trained import load_trained
from gramline.pipeline.models.write_back import (
    LAYOUTS,
    Layout,
    annotated_lines,
    holds_predictions,
    layout_of_input,
    layout_of_output,
    with_predictions,
)

HELP = """Label the structures of CORPUS with MODEL, or choose one candidate of each group with a ranker.

CORPUS is a corpus, or a file in any format that `gramline corpus import` reads: the model describes its words as those
it learned from. A file in columns comes back with one column more, the predicted label; CoNLL-U with Predicted= in
MISC; JSON lines with the key "predicted"; FASTA with a line of labels below the letters. A corpus gives JSON lines
{"id", "tokens", "labels"}. The name of the output or --format chooses another format. Chosen candidates are JSON lines
{"id", "group", "candidate", "tree"}, candidates counted from 0, or brackets. With --probabilities JSON lines have one
object {label: probability} per position as well, other formats the probability of the label.

With --stdin structures are labeled as they arrive, JSON lines or CoNLL columns with a blank line after each structure,
until the input ends.

\b
Example:
  gramline predict model.zarr new.conll -o labeled.conll
  gramline predict model.zarr new.parquet -o predictions.jsonl
  tail -f sentences.jsonl | gramline predict model.zarr --stdin"""


class Asked(NamedTuple):
    """What was asked for."""

    model: str
    corpus: str
    output: str | None
    layout: Layout | None
    input_format: Any
    where: Prediction
    probabilities: bool


class Answered(NamedTuple):
    """What to write, and what to say of it."""

    sizes: dict[str, int]
    done: str
    records: Iterator[dict[str, Any]]
    lines: Iterator[str]
    save: Callable[[str], None] | None = None  # a corpus that writes itself


@click.command(help=HELP)
@click.argument("model")
@click.argument("corpus", required=False)
@click.option("-o", "--output", metavar="FILE", callback=new_file, help="Where to write [default: stdout].")
@click.option("--format", "layout", type=click.Choice(LAYOUTS), help="How to write [default: as CORPUS is written].")
@click.option("--input-format", type=click.Choice(list(FORMATS)), help="Of CORPUS [default: by its name].")
@click.option("--stdin", "from_stdin", is_flag=True, help="Label what arrives on stdin, structure by structure.")
@click.option("--block-rows", type=click.IntRange(1), help="Positions handled at a time.")
@click.option("--probabilities", is_flag=True, help="Of all labels, from learners that know them.")
@cluster_options
@cost_option
@json_option
def predict(
    model: str,
    corpus: str | None,
    output: str | None,
    layout: Layout | None,
    input_format: Any,
    from_stdin: bool,
    block_rows: int | None,
    probabilities: bool,
    given: OptionValues,
    bill: Bill,
    as_json: bool,
) -> None:
    if from_stdin:
        unfit = {"CORPUS": corpus, "-o": output, "--format": layout, "--block-rows": block_rows, "--json": as_json}
        unfit |= {f"--{key.replace('_', '-')}": True for key in given.of("cluster")}
        _label_stdin(model, input_format, probabilities, [name for name, value in unfit.items() if value])
        bill.say(err=True)
        return
    if corpus is None:
        raise InputError("there is nothing to label", advice="give a corpus or a file, or --stdin")
    if output is not None and Path(output).exists() and Path(corpus).exists() and Path(output).samefile(corpus):
        raise InputError(f"{output} is what is to be labeled", advice="write the labels to another file")
    where = Prediction(model, given, block_rows)
    asked = Asked(model, corpus, output, layout, input_format, where, probabilities)
    begin = perf_counter()
    trained = load_trained(model)
    answered = _labels(trained, asked) if isinstance(trained, Model) else _choices(trained, asked)
    seconds = perf_counter() - begin
    result = {"model": model, "corpus": corpus, "output": output, **answered.sizes, "seconds": seconds}
    if output is not None and answered.save is not None:
        answered.save(output)
    elif output is not None:
        write_lines(answered.lines, output)
    if as_json:
        predictions = {} if output is not None else {"predictions": list(answered.records)}
        say_json(result | bill.result() | predictions)
        return
    for line in answered.lines if output is None else [f"{answered.done}{duration(seconds)}: {output}"]:
        say(line)
    if output is not None:
        say_next(f"gramline evaluate {short_path(model)} FILE_WITH_LABELS")
    bill.say(err=output is None)  # stdout without -o is for predictions alone


def _label_stdin(path: str, layout: Any, probabilities: bool, unfit: list[str]) -> None:
    if unfit:
        raise InputError(f"{unfit[0]} has no effect with --stdin", advice="leave it out")
    if layout not in (None, "conll", "jsonl"):
        raise InputError(f"{layout} does not come line by line", advice="send JSON lines or CoNLL columns")
    trained = load_trained(path)
    if not isinstance(trained, Model):
        raise InputError(f"{path} is a ranker, which chooses among all candidates of a group", advice="give a file")
    stream = LabeledStream(trained, "stdin", layout, probabilities=probabilities)
    for answer in stream.answers(decoded(sys.stdin.buffer, "stdin")):
        say("\n".join(answer))  # which flushes
        say_notes(trained.notes)


def _labels(model: Model, asked: Asked) -> Answered:
    source = asked.input_format or layout_of_input(asked.corpus, model.recipe)
    layout = asked.layout or layout_of_output(asked.output, source)
    _require_layout_of_labels(layout, asked.output)
    structures = model.read(asked.corpus, asked.input_format)
    predictions = _predicted(model, structures, asked)
    say_notes(model.notes)
    sizes = {"structures": len(structures), "positions": structures.n_positions}
    done = f"{count(len(structures), 'structure')} and {count(structures.n_positions, 'position')} labeled in "
    if layout == "parquet":
        save = with_predictions(structures, predictions).save
        return Answered(sizes, done, predictions.records(), iter(()), save)
    lines = annotated_lines(asked.corpus, source, layout, predictions, structures)
    return Answered(sizes, done, predictions.records(), lines)


def _predicted(model: Model, structures: Corpus, asked: Asked) -> Predictions:
    by_position = None
    if asked.probabilities:
        labels, table = asked.where.labels_and_probabilities(model, structures)
        by_position = by_label(structures.by_structure(table), model.label_names)
    else:
        labels = asked.where.labels(model, structures)
    return Predictions(structures.ids, structures.tokens, labels, by_position)


def _choices(ranker: Any, asked: Asked) -> Answered:
    # A labeler must not wait for the parser and its grammar to load.
    from gramline.pipeline.models.choices import choice_records, chosen_trees

    if asked.probabilities:
        raise InputError(f"{asked.model} is a ranker, which knows no probabilities; leave --probabilities out")
    layout = asked.layout or layout_of_output(asked.output, "jsonl")
    if layout not in ("jsonl", "brackets"):
        raise InputError("chosen candidates are whole structures, which do not fit into columns; write them as jsonl")
    asked.where.say_unused()
    candidates = Corpus.read(asked.corpus, format=asked.input_format)
    chosen = ranker.choose(candidates)
    choices = list(choice_records(candidates, chosen))
    lines = (json.dumps(record, ensure_ascii=False) for record in choices)
    return Answered(
        {"groups": len(choices), "candidates": len(candidates)},
        f"one of {count(len(candidates), 'candidate')} chosen in each of {count(len(choices), 'group')}, ",
        iter(choices),
        chosen_trees(candidates, chosen) if layout == "brackets" else lines,
    )


def _require_layout_of_labels(layout: Layout, output: str | None) -> None:
    if layout == "brackets":
        raise InputError("labels of positions do not fit into brackets", advice="write them as jsonl")
    if layout == "parquet" and output is None:
        raise InputError("a corpus cannot be written to stdout", advice="say where to write it (-o FILE)")
    if layout == "parquet" and output is not None and Path(output).exists() and not holds_predictions(output):
        raise InputError(f"{output} holds other data than predictions", advice="choose another path or remove it")
