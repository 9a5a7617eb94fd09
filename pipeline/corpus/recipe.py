"""How a corpus was made: all that turns a raw file, or lists of words, into the same features again.

A recipe knows the reader, its columns, the feature set or template and the window. It does not know the label names
nor the features that a minimum count left over: the corpus, or the model trained on it, does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from gramline.pipeline.choices import CorpusFormat
from gramline.pipeline.corpus.readers.features import window_of
from gramline.pipeline.errors import CorpusError

if TYPE_CHECKING:
    from gramline.pipeline.corpus.corpus import Corpus

LISTS = "lists"  # the format of what was never a file
BY_TEMPLATE = "template"  # the features of a template, in place of the name of a set of features
BEFORE_WORD = "columns_before_word"  # the option that says how many, the label not counted, are left out
LIKE = "like_training"  # the option that says so of the features of a template
OBSERVED = ("observation", "strip_functions", "strip_empty", "lower_case", "unusual_letters")  # options that count
OF_FEATURES = ("template", "minimum count", "columns")  # compared where both sets of features have them
_NONE = "none"


class Difference(NamedTuple):
    """One thing that two recipes have otherwise: `this` and `other` as text."""

    what: str
    this: str
    other: str

    def __str__(self) -> str:
        return f"{self.what} {self.this} instead of {self.other}"


@dataclass(frozen=True)
class Recipe:
    """How the structures of a corpus were read and described.

    Attributes
    ----------
    format : of the file; "lists" for lists in Python.
    kind : of the structures.
    features, window : the feature set ("token": words, or features as they were given) and its neighbours;
        "template" for those of a template.
    template : its text.
    minimum_count : how often a feature of the template occurs at least, in the training corpus.
    columns : columns of a token, the word first, without the label and without those before the word.
    options : the other options of the reader, as pairs sorted by name.

    >>> recipe = Recipe("lists", features="spelling", window=1)
    >>> recipe.describe()
    'lists, spelling features with a window of 1'
    >>> corpus = recipe.corpus_of([["They", "run"]])
    >>> corpus.table["features"][0][1][-1].as_py(), corpus.recipe == recipe
    ('w[0]=run', True)
    >>> [str(difference) for difference in recipe.differences(Recipe("lists"))]
    ['features spelling instead of token', 'window 1 instead of 0']
    """

    format: str
    kind: str = "sequences"
    features: str = "token"
    window: int = 0
    template: str | None = None
    minimum_count: int = 1
    columns: int = 1
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, layout: str, kind: str, features: str, window: int | None, columns: int = 1, **options: Any) -> Self:
        """The recipe of a reader with a feature set; options that are None say nothing."""
        return cls(layout, kind, features, window_of(features, window), columns=columns, options=option_pairs(options))

    def option(self, name: str, default: Any = None) -> Any:
        """One of the other options of the reader."""
        return dict(self.options).get(name, default)

    # ---- the same again

    def read(
        self,
        path: str | Path,
        *,
        format: CorpusFormat | None = None,
        labels: Iterable[str] | None = None,
        keep: Collection[str] | None = None,
    ) -> Corpus:
        """A raw file with the features of this recipe; it may have labels or none.

        Parameters
        ----------
        path : a file in any format; its columns are those of the recipe, with or without the label.
        format : of the file; by default by its name, else that of the recipe.
        labels : the label names in the order that breaks ties.
        keep : the features of the training corpus, which a template with a minimum count needs.
        """
        from gramline.pipeline.corpus.recipe_reading import read_again  # readers make corpora, which have a recipe

        return read_again(self, path, format, labels, keep)

    def corpus_of(
        self,
        sentences: Iterable[Any],
        y: Iterable[Any] | None = None,
        *,
        links: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
        keep: Collection[str] | None = None,
    ) -> Corpus:
        """Raw sentences in memory with the features of this recipe.

        Parameters
        ----------
        sentences : one list per structure of words, or of rows with one string per column (word, part of speech, ...).
        y : one list of labels per structure.
        links : children of every node for trees, edges for graphs; see `Corpus.from_trees` and `Corpus.from_dags`.
        labels, keep : as for `read`.
        """
        from gramline.pipeline.corpus.recipe_reading import observe_lists  # as above

        return observe_lists(self, sentences, y, links, labels, keep)

    # ---- what it says

    @property
    def needs_kept_features(self) -> bool:
        """Whether new text can be described only with the features that training kept."""
        return self.features == BY_TEMPLATE and self.minimum_count > 1

    def describe(self) -> str:
        """One line: format, columns, features and what else was said to the reader."""
        parts = [self.format if self.kind in ("sequences", "parses") else f"{self.format} {self.kind}"]
        if self.columns > 1:
            parts.append(f"{self.columns} columns a token")
        if self.template is not None:
            n_lines = sum(line.startswith("U") for line in self.template.splitlines())
            seen = f" seen {self.minimum_count} times or more" if self.minimum_count > 1 else ""
            parts.append(f"features{seen} of a template of {n_lines} lines")
        elif self.kind != "parses":
            near = f" with a window of {self.window}" if self.window else ""
            parts.append("tokens as they are" if self.features == "token" else f"{self.features} features{near}")
        parts += [f"{name.replace('_', ' ')} {_shown(value)}" for name, value in self.options]
        return ", ".join(parts)

    def differences(self, other: Recipe) -> tuple[Difference, ...]:
        """What makes this recipe see other structures or features than `other` does; labels do not count."""
        mine, theirs = self._deciding(), other._deciding()
        if self.option(LIKE) or other.option(LIKE):  # the features are those of a training corpus, whatever the count
            mine.pop("minimum count", None)
            theirs.pop("minimum count", None)
        return tuple(
            Difference(what, _shown(mine.get(what)), _shown(theirs.get(what)))
            for what in dict.fromkeys((*mine, *theirs))
            if mine.get(what) != theirs.get(what) and (what not in OF_FEATURES or {what} <= mine.keys() & theirs.keys())
        )

    def _deciding(self) -> dict[str, Any]:
        deciding: dict[str, Any] = {"kind": self.kind, "features": self.features, "window": self.window}
        if self.template is not None:
            deciding |= {"template": self.template, "minimum count": self.minimum_count}
        if self.features not in ("token", BY_TEMPLATE):  # a template names its columns, a bare token is the first one
            deciding["columns"] = self.columns
        return deciding | {name.replace("_", " "): value for name, value in self.options if name in OBSERVED}

    # ---- as a small dictionary

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what a corpus file and a model keep."""
        return asdict(self) | {"options": dict(self.options)}

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """The inverse of `to_dict`."""
        known = {field.name for field in fields(cls)}
        if not isinstance(description, Mapping) or not known >= set(description) >= {"format"}:
            raise CorpusError("the recipe of the corpus cannot be read", advice="import the corpus again")
        options = description.get("options", {})
        if not isinstance(options, Mapping):
            raise CorpusError("the options of the recipe cannot be read", advice="import the corpus again")
        return cls(**{**description, "options": option_pairs(options)})


def option_pairs(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Options sorted by name, without those that are not given; lists become tuples, so that recipes compare equal."""
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in sorted(given.items()))


def _shown(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    text = str(value)
    return text if "\n" not in text else f"of {len(text.splitlines())} lines beginning {text.splitlines()[0]!r}"


def spelling(
    X: Iterable[Any], y: Iterable[Any] | None = None, *, window: int = 1, labels: Iterable[str] | None = None
) -> Corpus:
    """Words with what their letters say, and those of their neighbours: a corpus that knows its recipe.

    Parameters
    ----------
    X : one list of words per sentence.
    y, labels : as for `Corpus.from_sequences`.
    window : neighbours on either side whose features count too.

    >>> corpus = spelling([["Ann", "ran"]], [["name", "O"]])
    >>> corpus.tokens, corpus.recipe.describe()
    ([['Ann', 'ran']], 'lists, spelling features with a window of 1')
    """
    return Recipe.of(LISTS, "sequences", "spelling", window).corpus_of(X, y, labels=labels)
