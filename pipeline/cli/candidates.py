"""`gramline corpus candidates`: the n best parses of every sentence of a treebank, scored against its tree."""

from __future__ import annotations

from time import perf_counter

import click

from gramline.pipeline.candidates.corpus import (
    candidate_corpus,
    candidate_quality,
    outcomes,
    propose,
    propose_held_out,
    read_trees,
)
from gramline.pipeline.candidates.grammar import Grammar
from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say, say_json, say_pairs
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.stopping import when_stopped
from gramline.pipeline.errors import InputError
from gramline.pipeline.events import SentenceParsed

HELP = """Parse the sentences of TREES with a grammar read off a treebank, and keep the best parses of each.

TREES is a file of bracketed trees, or a corpus of parses. Every candidate carries its sentence (group), its log
probability, its score (precision and recall of constituents against the right tree, averaged) and the weight of the
sentence. A training set gets its candidates from grammars that did not see the sentence (--held-out), new sentences
theirs from the grammar of the training trees (--grammar).

\b
Example:
  gramline corpus candidates train.trees --held-out 10 -o train.parquet
  gramline corpus candidates new.trees --grammar train.trees -o new.parquet"""


output_option = click.option(
    *("-o", "--output"),
    required=True,
    metavar="CORPUS",
    callback=new_file,
    help="Where to write the corpus (.parquet).",
)


@click.command(help=HELP)
@click.argument("trees")
@output_option
@click.option("--grammar", metavar="TREEBANK", help="Read the grammar off these trees.")
@click.option("--held-out", type=click.IntRange(2), metavar="FOLDS", help="Read a grammar per fold off the others.")
@click.option("--best", type=click.IntRange(1), default=20, show_default=True, help="Parses per sentence.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=10.0, show_default=True, help="Per sentence."
)
@click.option(
    "--horizontal", type=click.IntRange(0), help="Children that a long rule remembers [default: all of them]."
)
@click.option("--strip-functions", is_flag=True, help="NP-SBJ-1 becomes NP.")
@click.option("--strip-empty", is_flag=True, help="Leave -NONE- elements out.")
@json_option
def candidates(
    trees: str,
    output: str,
    grammar: str | None,
    held_out: int | None,
    best: int,
    seconds: float,
    horizontal: int | None,
    strip_functions: bool,
    strip_empty: bool,
    as_json: bool,
) -> None:
    if (grammar is None) == (held_out is None):
        raise InputError(
            "give either --grammar TREEBANK, or --held-out FOLDS to parse every tree without its own rules"
        )
    begin = perf_counter()
    gold = read_trees(trees, strip_functions, strip_empty)
    again = "no candidate was written; the same command begins again"
    with when_stopped(again), show_progress(not as_json) as listener:

        def parsed(n_done: int) -> None:
            listener(SentenceParsed(n_done, len(gold)))

        if grammar is not None:
            read = Grammar.of(read_trees(grammar, strip_functions, strip_empty), horizontal=horizontal)
            lists = propose(gold, read, best, seconds, parsed)
        else:
            folds = held_out or 0
            lists = propose_held_out(gold, best, folds, horizontal=horizontal, seconds=seconds, progress=parsed)
    made = candidate_corpus(lists)
    made.save(output)
    ended = outcomes(lists)
    quality = candidate_quality(lists, made)
    result = {
        "path": output,
        "sentences": len(gold),
        "candidates": len(made),
        "outcomes": ended,
        "first": quality.first,
        "oracle": quality.oracle,
        "seconds": perf_counter() - begin,
    }
    if as_json:
        say_json(result)
        return
    say_pairs(
        {
            "sentences": f"{len(gold):,}",
            **{status: f"{number:,}" for status, number in ended.items()},
            "parse score": f"{quality.first:.4f} of the most probable parses, {quality.oracle:.4f} of the best ones",
        }
    )
    say(f"{count(len(made), 'candidate')} in {duration(perf_counter() - begin)}: {output}")
