"""A recipe applied again: to a raw file, or to sentences in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.choices import CorpusFormat
from gramline.pipeline.corpus.columns import children_column, edges_column
from gramline.pipeline.corpus.constructors import token_columns
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import FORMATS, format_of
from gramline.pipeline.corpus.parses import Tree, single_tree
from gramline.pipeline.corpus.readers.brackets import without_empty, without_functions
from gramline.pipeline.corpus.readers.columns import ColumnTable, read_columns
from gramline.pipeline.corpus.readers.fasta import LetterRules, has_label_lines
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.readers.templates import FeatureTemplate
from gramline.pipeline.corpus.recipe import BEFORE_WORD, BY_TEMPLATE, LISTS, Recipe
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.corpus.validation import AT_LEAST_ONE, EMPTY
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.files import require_file

GIVEN = (LISTS, "jsonl")  # formats whose tokens may be feature sets


def read_again(
    recipe: Recipe,
    path: str | Path,
    layout: CorpusFormat | None,
    labels: Iterable[str] | None,
    keep: Collection[str] | None,
) -> Corpus:
    """The file with the features of the recipe; whether it has labels is seen from its columns."""
    own: CorpusFormat = "conll" if recipe.format == LISTS else recipe.format  # type: ignore[assignment]
    chosen = layout or format_of(str(path), own)
    require_file(str(path), f"a {chosen} file")
    importer = FORMATS[chosen]
    options: dict[str, Any] = {name: value for name, value in recipe.options if name in importer.options}
    if recipe.features == BY_TEMPLATE:
        _require_kept(recipe, keep)
        if "template" not in importer.options:
            problem = f"a template reads columns, and {path} is read as {chosen}"
            raise CorpusError(problem, advice="give a file in columns (conll)")
        options |= {"template": _template(recipe.template or ""), "minimum_count": recipe.minimum_count}
    elif "features" in importer.options and recipe.features != "token":
        options |= {"features": recipe.features, "window": recipe.window}
    if chosen == "conll":
        options = {name: value for name, value in options.items() if name not in ("label_column", "no_labels")}
        options |= _word_and_label(recipe, path)
    elif chosen == "conllu":
        options["kind"] = recipe.kind
    elif chosen == "fasta" and options.get("label_lines"):
        options["label_lines"] = has_label_lines(path)
    read = importer.read(str(path), options, None if labels is None else list(labels), keep)
    if read.recipe is not None and (differences := read.recipe.differences(recipe)):
        problem = f"{path} gives {', '.join(map(str, differences))}"
        raise CorpusError(
            problem, advice=f"give a file that can be read like the training corpus ({recipe.describe()})"
        )
    return read


def _word_and_label(recipe: Recipe, path: str | Path) -> dict[str, Any]:
    """Where the word and the label are; a file that has only the columns of the tokens has no label."""
    marks = {name: bool(recipe.option(name)) for name in ("skip_document_marks", "skip_comments")}
    width = len(read_columns(path, **marks).columns)
    before = recipe.option(BEFORE_WORD, 0)
    expected = before + recipe.columns
    if width == expected:
        return {"no_labels": True, "word_column": before}
    if width == expected + 1:
        label = recipe.option("label_column", -1)
        return {"label_column": label, "word_column": before + (label % width <= before)}
    problem = f"{path} has {_columns(width)}, where a token has {_columns(expected)}, or one more with the label"
    raise CorpusError(problem, advice=f"give the columns of the training corpus ({recipe.describe()})")


def observe_lists(
    recipe: Recipe,
    sentences: Iterable[Any],
    y: Iterable[Any] | None,
    links: Iterable[Any] | None,
    labels: Iterable[str] | None,
    keep: Collection[str] | None,
) -> Corpus:
    """Sentences in memory with the features of the recipe."""
    if recipe.kind in ("parses", "tagged"):
        return _whole_structures(recipe, sentences, y, links, labels)
    needs_links = recipe.kind in ("trees", "dags")
    if needs_links != (links is not None):
        problem = f"a corpus of {recipe.kind} {'needs' if needs_links else 'has no'} links"
        raise CorpusError(problem, advice="give children or edges as links" if needs_links else "leave them out")
    if recipe.format == "fasta":
        sentences, y = _letters(recipe, sentences, y)
    if recipe.features == "token" and recipe.format in GIVEN:
        starts, columns = token_columns(sentences)
    else:
        table = _table(recipe, sentences)
        starts = table.starts
        if recipe.features == BY_TEMPLATE:
            _require_kept(recipe, keep)
            columns = _template(recipe.template or "").observe(table, minimum_count=recipe.minimum_count, keep=keep)
        else:
            columns = observe(table, recipe.features, recipe.window)
    if links is not None:
        columns["links"] = (children_column if recipe.kind == "trees" else edges_column)(links, starts)
    return Corpus.assembled(recipe.kind, starts, columns, y, labels=labels).described(recipe)


def _whole_structures(
    recipe: Recipe, sentences: Iterable[Any], y: Any, links: Any, labels: Iterable[str] | None
) -> Corpus:
    if y is not None or links is not None or labels is not None:
        raise CorpusError(f"{recipe.kind} are given whole, without labels and links", advice="leave those out")
    if recipe.kind == "tagged":
        return Corpus.from_tagged(sentences).described(recipe)
    trees = (single_tree(tree, index) for index, tree in enumerate(sentences))
    if recipe.option("strip_empty"):
        trees = (_not_empty(tree, index) for index, tree in enumerate(trees))
    if recipe.option("strip_functions"):
        trees = (without_functions(tree) for tree in trees)
    return Corpus.from_parses(trees).described(recipe)


def _not_empty(tree: Tree, index: int) -> Tree:
    if (kept := without_empty(tree)) is None:
        raise CorpusError("the tree holds nothing but empty elements", advice="remove it", structure=index)
    return kept


def _table(recipe: Recipe, sentences: Iterable[Any]) -> ColumnTable:
    """The columns of words, or of rows of strings."""
    rows, lengths = list[Sequence[str]](), list[int]()
    for index, sentence in enumerate(sentences):
        tokens = listed(sentence, index, "tokens")
        if not tokens:
            raise CorpusError("no positions", advice="leave empty structures out", structure=index)
        for position, token in enumerate(tokens):
            row = (token,) if isinstance(token, str) else token
            if not isinstance(row, (tuple, list)) or not all(isinstance(part, str) for part in row):
                problem = f"a token is a word, or a row of {recipe.columns} strings, got {token!r}"
                raise CorpusError(problem, structure=index, position=position)
            if len(row) != recipe.columns and (recipe.features != "token" or not row):
                wanted = "a word" if recipe.columns == 1 else f"a row of {recipe.columns} columns"
                problem = f"the token {token!r} has {_columns(len(row))}, where {wanted} is expected"
                advice = f"give tokens like those of the training corpus ({recipe.describe()})"
                raise CorpusError(problem, advice=advice, structure=index, position=position)
            rows.append(row if recipe.features != "token" else row[:1])
        lengths.append(len(tokens))
    if not lengths:
        raise CorpusError(EMPTY, advice=AT_LEAST_ONE)
    return ColumnTable(offsets_from_lengths(lengths), tuple(zip(*rows, strict=True)), source="the sentence")


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"


def _letters(recipe: Recipe, sentences: Iterable[Any], y: Iterable[Any] | None) -> tuple[list[Any], list[Any] | None]:
    """Strings or lists of letters by the rules of the recipe; labels of dropped letters go with them."""
    rules = LetterRules(recipe.option("lower_case", "keep"), recipe.option("unusual_letters", "keep"))
    given = [list(text) if isinstance(text, str) else listed(text, k, "letters") for k, text in enumerate(sentences)]
    for structure, letters in enumerate(given):
        for position, letter in enumerate(letters):
            if not isinstance(letter, str) or len(letter) != 1:
                problem = f"a letter is expected, got {letter!r}"
                raise CorpusError(problem, structure=structure, position=position)
    read = [rules.apply(letters) for letters in given]
    rows = None if y is None else list(y)
    if rows is not None and len(rows) == len(read):
        for structure, (row, letters) in enumerate(zip(rows, given, strict=True)):
            if row is not None and len(row) == len(letters):
                rows[structure] = [row[place] for place in read[structure][1]]
    return [letters for letters, _ in read], rows


def _require_kept(recipe: Recipe, keep: Collection[str] | None) -> None:
    if recipe.needs_kept_features and keep is None:
        problem = f"the training corpus kept the features that it has {recipe.minimum_count} times or more"
        raise CorpusError(problem, advice="give them as `keep`: the features of its vocabulary")


@lru_cache(maxsize=8)
def _template(text: str) -> FeatureTemplate:
    return FeatureTemplate.parse(text.split("\n"), "the template of the recipe")
