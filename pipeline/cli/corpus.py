"""`gramline corpus import|show|generate`: files of others to a corpus, a look at one, made-up sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, get_args

import click

from gramline.pipeline.choices import ConlluKind, CorpusFormat, LowerCase, UnusualLetters
from gramline.pipeline.cli.candidates import output_option
from gramline.pipeline.cli.terminal.output import (
    WIDTH,
    count,
    json_option,
    say,
    say_json,
    say_next,
    say_notes,
    say_pairs,
    say_table,
    short_path,
)
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import FORMATS, SUFFIXES, import_corpus, import_notes
from gramline.pipeline.corpus.parses import bracketed
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.errors import CorpusError, InputError

LABEL_LINES = 6  # that `import` prints
SHOWN = 3  # structures that `import` and `show` print

IMPORT_HELP = """Read FILE (plain or gzip) into a corpus, one Parquet file.

\b
conll     one token a line, a blank line ends a sentence; space or tab between
jsonl     {"tokens": [...], "labels": [...]} per line; "children", "edges",
          "heads", "tags" or "tree" for other structures
conllu    dependency trees in ten columns
brackets  parse trees, (S (NP they) (VP run))
fasta     >name and letters; labels below each sequence (--label-lines) or in
          a second FASTA file (--label-file)

\b
Example:
  gramline corpus import eng.train --features spelling -o train.parquet
  gramline corpus import test.data --features template:template \\
      --like train.parquet -o test.parquet"""


@click.command("import", help=IMPORT_HELP)
@click.argument("file")
@output_option
@click.option(
    *("--format", "layout"),
    type=click.Choice(list(FORMATS)),
    help=f"[default: by the name ({', '.join(SUFFIXES)}), else conll]",
)
@click.option(
    "--labels", metavar="A,B,...", help="Label names in the order that breaks ties [default: most frequent first]."
)
@click.option(
    "--like", metavar="CORPUS", help="Take label names (others come last) and kept template features from this corpus."
)
@click.option(
    "--features",
    metavar="SET",
    help="conll, conllu, jsonl, fasta: token, words, spelling; conll: template:FILE [default: token].",
)
@click.option("--window", type=click.IntRange(0), help="With --features: neighbours whose features count too.")
@click.option("--minimum-count", type=click.IntRange(1), help="conll: keep template features that occur so often.")
@click.option("--word-column", type=int, help="conll: from 0; columns before it are left out [default: the first].")
@click.option("--label-column", type=int, help="conll: from 0, negative from the end [default: the last].")
@click.option("--no-labels", is_flag=True, default=None, help="conll, conllu: the file has none.")
@click.option("--missing-label", metavar="LABEL", help="conll, fasta: this label means there is none.")
@click.option("--skip-document-marks", is_flag=True, default=None, help="conll: leave -DOCSTART- lines out.")
@click.option("--skip-comments", is_flag=True, default=None, help="conll: leave lines out that begin with '# '.")
@click.option("--label", metavar="NAME", help="conllu: UPOS, XPOS, DEPREL, or a key of MISC or FEATS [default: UPOS].")
@click.option("--kind", type=click.Choice(get_args(ConlluKind)), help="conllu: what to make [default: trees].")
@click.option("--strip-functions", is_flag=True, default=None, help="brackets: NP-SBJ-1 becomes NP.")
@click.option("--strip-empty", is_flag=True, default=None, help="brackets: leave -NONE- elements out.")
@click.option("--label-lines", is_flag=True, default=None, help="fasta: a line of labels below each line of letters.")
@click.option("--label-file", metavar="FASTA", help="fasta: labels under the same names, one letter each.")
@click.option(
    "--lower-case",
    type=click.Choice(get_args(LowerCase)),
    help="fasta: small letters stay, become capitals or X [default: keep].",
)
@click.option(
    "--unusual-letters",
    type=click.Choice(get_args(UnusualLetters)),
    help="fasta: X, B, Z, U, O, J, -, . and * stay, are left out or become X [default: keep].",
)
@json_option
def import_(
    file: str,
    output: str,
    layout: CorpusFormat | None,
    labels: str | None,
    like: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    training = None if like is None else Corpus.load(like)
    read = import_corpus(file, layout, labels=labels, like=training, options=options)
    notes = list(import_notes(read, file, training=training, like=like, key=options["label"]))
    say_notes(map(str, notes))
    read.save(output)
    _say_written(read, output, as_json, {"notes": [note.to_dict() for note in notes]})
    if not as_json:
        if counts := read.label_counts():
            _say_labels(counts)
        _say_examples(read)
        say_next(*_next_commands(read, output, is_new=like is not None))


def _next_commands(read: Corpus, path: str, *, is_new: bool) -> list[str]:
    """New structures are for a model; others can be learned from if they have labels, and have a Gram matrix if not."""
    has_labels = any(read.label_counts().values())
    if is_new:
        return [f"gramline {'evaluate' if has_labels else 'predict'} MODEL {short_path(path)}"]
    if has_labels:
        return [f"gramline fit {short_path(path)}", f"gramline cv {short_path(path)}"]
    return [f"gramline gram build {short_path(path)} -o GRAM"]


def _say_labels(counts: Mapping[str, int]) -> None:
    """All labels with their counts; of very many, the most frequent ones."""
    glued = ", ".join(f"{name} {number:,}".replace(" ", "\u00a0") for name, number in counts.items())
    lines = wrap(f"labels: {glued}", WIDTH, subsequent_indent="  ", max_lines=LABEL_LINES, placeholder=" ...")
    for line in lines:
        say(line.replace("\u00a0", " "))


def _say_examples(structures: Corpus) -> None:
    for line in _lines(structures.select(range(min(SHOWN, len(structures))))):
        say(line if len(line) <= WIDTH else line[: WIDTH - 3] + "...")


@click.command()
@click.argument("path", metavar="CORPUS")
@json_option
def show(path: str, as_json: bool) -> None:
    """Show the sizes, labels and first structures of CORPUS.

    \b
    Example:
      gramline corpus show train.parquet
    """
    structures = Corpus.load(path)
    summary = structures.show()
    if as_json:
        say_json({"path": path} | summary)
        return
    pairs = {
        "corpus": path,
        "kind": summary["kind"],
        "structures": f"{summary['structures']:,}, the longest has {count(summary['longest'], 'position')}",
        "positions": f"{summary['positions']:,}, {summary['unlabeled']:,} of them without a label",
        "features": f"{summary['features']:,}",
    }
    if summary["recipe"]:
        pairs["made from"] = summary["recipe"]
    if summary["columns"]:
        pairs["columns"] = ", ".join(summary["columns"])
    say_pairs(pairs | {"fingerprint": summary["fingerprint"]})
    if summary["labels"]:
        positions = summary["positions"]
        rows = [(name, f"{number:,}", f"{number / positions:.1%}") for name, number in summary["labels"].items()]
        say_table(("label", "positions", "part"), rows)
    _say_examples(structures)


def _lines(structures: Corpus) -> Iterator[str]:
    """Structures for people: a tree in brackets, other tokens with their labels."""
    if structures.kind == "parses":
        for tree in structures.trees:
            try:
                yield bracketed(tree)
            except CorpusError:  # a symbol that brackets cannot hold
                yield json.dumps(tree, ensure_ascii=False)
        return
    for tokens, labels in zip(structures.tokens, structures.labels, strict=True):
        pairs = zip(tokens, labels, strict=True)
        yield " ".join(f"{token or '_'}/{label}" if label is not None else token or "_" for token, label in pairs)


@click.command()
@click.argument("name", metavar="saleslog")
@output_option
@click.option("--sentences", type=click.IntRange(1), default=200, show_default=True, help="How many.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The same seed, the same sentences.")
@click.option(
    "--kind",
    type=click.Choice(["sequences", "trees", "dags", "parses"]),
    default="sequences",
    show_default=True,
    help="Tokens, dependency trees, word graphs or parse trees of the same sentences.",
)
@click.option("--features", default="token", show_default=True, metavar="SET", help="token, words or spelling.")
@click.option("--window", type=click.IntRange(0), help="Neighbours whose features count too.")
@json_option
def generate(
    name: str, output: str, sentences: int, seed: int, kind: str, features: str, window: int | None, as_json: bool
) -> None:
    """Generate sales-log sentences with product, vendor, number and reason labels, each wished, used or rejected.

    Which of the three hangs on a verb far away in the sentence.

    \b
    Example:
      gramline corpus generate saleslog --sentences 200 --seed 1 -o train.parquet
    """
    if name != "saleslog":
        raise InputError(f"there is no corpus {name!r} to generate; there is saleslog")

    made = generate_saleslog(sentences, seed, kind, features=features, window=window)
    made.save(output)
    _say_written(made, output, as_json)


def _say_written(corpus: Corpus, output: str, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    summary = corpus.show()
    if as_json:
        say_json({"path": output} | summary | dict(more or {}))
    else:
        kind = summary["kind"].removesuffix("s") if summary["structures"] == 1 else summary["kind"]
        say(
            f"{summary['structures']:,} {kind}, {count(summary['positions'], 'position')}, "
            f"{count(summary['features'], 'feature')}, {count(len(summary['labels']), 'label')}: {output}"
        )
