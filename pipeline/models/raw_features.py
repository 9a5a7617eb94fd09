"""The features of the positions of one raw sentence, by name, as the readers of a corpus name them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gramline.pipeline.corpus.readers.features import FEATURE_SETS, column_name, placed
from gramline.pipeline.corpus.readers.templates import FeatureTemplate, Pattern
from gramline.pipeline.corpus.recipe import BY_TEMPLATE, Recipe
from gramline.pipeline.corpus.recipe_reading import GIVEN
from gramline.pipeline.corpus.tokens import feature_names, feature_values

REMEMBERED = 100_000  # values of columns whose features are kept

Row = Sequence[str]  # the columns of a token, the word first
Group = tuple[str, ...]  # names that come together, again and again


class Described(NamedTuple):
    """What is known of one position."""

    names: Sequence[str]
    groups: Sequence[Group] = ()  # of further names
    values: Sequence[float] | None = None  # of `names`; None: all are 1
    text: str | None = None  # a word that is its own feature


Describer = Callable[[Sequence[Any]], Iterator[Described]]


class UnusualError(Exception):
    """A sentence that is left to the readers: mostly because something is wrong with it."""


def describer_of(recipe: Recipe, known: Container[str]) -> Describer:
    """What names the features of the recipe; `known` are those of the training corpus."""
    if recipe.features == BY_TEMPLATE:
        return ByTemplate(recipe, known if recipe.needs_kept_features else None)
    if recipe.features != "token":
        return BySet(recipe)
    return as_given if recipe.format in GIVEN else first_columns


def as_given(sentence: Sequence[Any]) -> Iterator[Described]:
    """Tokens that are words or features already."""
    for token in sentence:
        if isinstance(token, str):
            yield Described((token,), text=token)
        elif isinstance(token, Mapping):
            numbers = feature_values(token, 0, 0)
            yield Described([*numbers], values=[*numbers.values()])
        else:
            yield Described(feature_names(token, 0, 0))


def first_columns(sentence: Sequence[Any]) -> Iterator[Described]:
    """The words alone."""
    return (Described(row[:1], text=row[0]) for row in rows_of(sentence, None))


def rows_of(sentence: Sequence[Any], n_columns: int | None) -> list[Row]:
    """Every token as its columns; `n_columns` None allows any number."""
    if n_columns in (None, 1) and all(isinstance(token, str) for token in sentence):
        return [(token,) for token in sentence]
    rows = [(token,) if isinstance(token, str) else token for token in sentence]
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != (n_columns or max(1, len(row))):
            raise UnusualError
        if not all(isinstance(part, str) for part in row):
            raise UnusualError
    return rows


class BySet:
    """Features of a built-in set, here and for the neighbours of a window."""

    def __init__(self, recipe: Recipe) -> None:
        self._window, self._n_columns = recipe.window, recipe.columns
        self._attributes = FEATURE_SETS[recipe.features][0]
        self._groups: dict[tuple[int, str | None], list[Group]] = {}

    def __call__(self, sentence: Sequence[Any]) -> Iterator[Described]:
        rows = rows_of(sentence, self._n_columns)
        if len(self._groups) > REMEMBERED:
            self._groups.clear()
        window, length, outside = self._window, len(rows), self._all_groups([None] * self._n_columns)
        described = [self._all_groups(row) for row in rows]
        for here in range(length):
            groups = list[Group]()
            for shift in range(2 * window + 1):
                there = here + shift - window
                for column in described[there] if 0 <= there < length else outside:
                    groups.append(column[shift])
            yield Described((), groups)

    def _all_groups(self, row: Sequence[str | None]) -> list[list[Group]]:
        """The features of every column of a token; None stands for a token beyond the sentence."""
        known = self._groups
        return [known.get((k, value)) or self._groups_of(k, value) for k, value in enumerate(row)]

    def _groups_of(self, column: int, value: str | None) -> list[Group]:
        """The features of a value at every place of the window, from the first to the last."""
        name = column_name(column) if column else "w"
        if value is None:
            items = [f"{name}-edge"]
        else:
            items = self._attributes(value) if self._attributes and not column else [f"{name}={value}"]
        # Seen from a position, its neighbour at offset d has the names with [d].
        places = range(-self._window, self._window + 1)
        groups = [tuple(placed(item, offset) for item in items) for offset in places]
        self._groups[column, value] = groups
        return groups


class ByTemplate:
    """Features of a template, those of `keep` alone where that is given."""

    def __init__(self, recipe: Recipe, keep: Container[str] | None) -> None:
        self._n_columns, self._keep = recipe.columns, keep
        self._patterns = FeatureTemplate.parse((recipe.template or "").split("\n")).patterns

    def __call__(self, sentence: Sequence[Any]) -> Iterator[Described]:
        rows = rows_of(sentence, self._n_columns)
        for here in range(len(rows)):
            names = [_expanded(pattern, rows, here) for pattern in self._patterns]
            yield Described(names if self._keep is None else [name for name in names if name in self._keep])


def _expanded(pattern: Pattern, rows: Sequence[Row], here: int) -> str:
    parts = [pattern.literals[0]]
    for (offset, column), literal in zip(pattern.macros, pattern.literals[1:], strict=True):
        there = here + offset
        if there < 0:
            value = f"_B-{-there}"
        else:
            value = rows[there][column] if there < len(rows) else f"_B+{there - len(rows) + 1}"
        parts += [value, literal]
    return "".join(parts)
