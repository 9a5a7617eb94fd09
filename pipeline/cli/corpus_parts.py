"""`gramline corpus split|sample|dedupe`: a corpus into parts of whole structures."""

from __future__ import annotations

from pathlib import Path

import click

from gramline.pipeline.cli.candidates import output_option
from gramline.pipeline.cli.terminal.input_paths import new_file
from gramline.pipeline.cli.terminal.output import count, json_option, say, say_json
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.duplicates import duplicate_groups
from gramline.pipeline.corpus.parts import sample_corpus, split_corpus, without_duplicates
from gramline.pipeline.errors import InputError

seed_option = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same seed, the same structures."
)


def _shares(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """PATH=SHARE as written; every path is one that can be written."""
    shares: dict[str, float] = {}
    for text in given:
        path, equals, share = text.rpartition("=")
        try:
            number = float(share.removesuffix("%"))
        except ValueError:
            equals = ""
            number = 0.0
        if not equals or not path:
            raise InputError(f"a part is PATH=SHARE, such as train.parquet=0.8, got {text!r}")
        if Path(path) in map(Path, shares):
            raise InputError(f"{path} is given twice", advice="name every part once")
        new_file(context, parameter, path)
        shares[path] = number
    return shares


@click.command()
@click.argument("path", metavar="CORPUS")
@click.argument("shares", metavar="PART=SHARE...", nargs=-1, required=True, callback=_shares)
@seed_option
@click.option("--group-duplicates", is_flag=True, help="Equal structures go into the same part.")
@click.option("--group", metavar="COLUMN", help="Structures with the same value there go into the same part.")
@json_option
def split(
    path: str, shares: dict[str, float], seed: int, group_duplicates: bool, group: str | None, as_json: bool
) -> None:
    """Split CORPUS into parts of whole structures, drawn at random.

    A part is the path to write and its share; the shares sum to 1, or to 100.

    \b
    Example:
      gramline corpus split all.parquet train.parquet=0.8 test.parquet=0.2
      gramline corpus split all.parquet train.parquet=80 dev.parquet=10 \\
          test.parquet=10 --group-duplicates --seed 7
    """
    if group_duplicates and group is not None:
        raise InputError("--group and --group-duplicates exclude each other", advice="give one of them")
    corpus = Corpus.load(path)
    groups = None
    if group_duplicates:
        groups = duplicate_groups(corpus).tolist()
    elif group is not None:
        groups = corpus.column(group)
    parts = split_corpus(corpus, shares, seed=seed, groups=groups)
    for name, part in parts.items():
        part.save(name)
    if as_json:
        sizes = [{"path": name, "structures": len(part), "positions": part.n_positions} for name, part in parts.items()]
        say_json({"corpus": path, "seed": seed, "parts": sizes})
        return
    for name, part in parts.items():
        share = f"{len(part) / len(corpus):.1%}"
        say(f"{count(len(part), 'structure')} ({share}), {count(part.n_positions, 'position')}: {name}")


@click.command()
@click.argument("path", metavar="CORPUS")
@output_option
@click.option(*("-n", "--structures"), type=click.IntRange(1), required=True, help="How many.")
@seed_option
@json_option
def sample(path: str, output: str, structures: int, seed: int, as_json: bool) -> None:
    """Draw structures of CORPUS at random, without repeats.

    \b
    Example:
      gramline corpus sample train.parquet -n 300 --seed 7 -o small.parquet
    """
    corpus = Corpus.load(path)
    drawn = sample_corpus(corpus, structures, seed=seed)
    drawn.save(output)
    if as_json:
        say_json({"path": output, "seed": seed, "of": len(corpus)} | drawn.show())
    else:
        say(f"{len(drawn):,} of {count(len(corpus), 'structure')}, {count(drawn.n_positions, 'position')}: {output}")


@click.command()
@click.argument("path", metavar="CORPUS")
@output_option
@json_option
def dedupe(path: str, output: str, as_json: bool) -> None:
    """Keep the first of all structures of CORPUS that are equal.

    Tokens, features and links count, labels do not.

    \b
    Example:
      gramline corpus dedupe all.parquet -o distinct.parquet
    """
    kept, n_removed, n_other = without_duplicates(Corpus.load(path))
    kept.save(output)
    if as_json:
        say_json({"path": output, "removed": n_removed, "removed_with_other_labels": n_other} | kept.show())
        return
    labels = f", {n_other:,} of them with other labels" if n_other else ""
    say(f"{count(n_removed, 'duplicate')} removed{labels}; {count(len(kept), 'structure')} left: {output}")
