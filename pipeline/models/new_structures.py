"""What a model is asked about, described as its training corpus was: a corpus made the same way, or raw sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from gramline.learners.estimator import is_listed
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import BY_TEMPLATE, LISTS, Recipe
from gramline.pipeline.errors import CorpusError, InputError

AS_GIVEN = "token"  # the set of features that leaves tokens as they are


def describe_raw(
    sentences: Iterable[Any],
    y: Iterable[Any] | None,
    kind: str,
    recipe: Recipe | None,
    keep: Collection[str] | None = None,
) -> Corpus:
    """Lists of words, of rows of columns or of features as a corpus of the recipe; `keep` as for `Recipe.corpus_of`."""
    if not is_listed(sentences):
        raise CorpusError(f"a model labels a list of sentences or a Corpus, got {type(sentences).__name__}")
    if kind != "sequences":
        raise CorpusError(f"the model labels {kind}", advice="give a Corpus of them, not lists")
    return (recipe or Recipe(LISTS)).corpus_of(sentences, y, keep=keep)


def describe_like(corpus: Corpus, recipe: Recipe | None) -> Corpus:
    """The corpus as the recipe describes it: bare words get its features, a corpus made otherwise is refused.

    A corpus of features whose makers said nothing is taken as it is.
    """
    if recipe is None or corpus.kind != recipe.kind:
        return corpus
    if not corpus.has_features and recipe.columns == 1 and recipe.features not in (AS_GIVEN, BY_TEMPLATE):
        corpus = corpus.with_features(recipe.features, recipe.window)
    own = corpus.recipe or (None if corpus.has_features else Recipe(LISTS, corpus.kind))
    if own is not None and (differences := own.differences(recipe)):
        raise InputError(
            f"the structures were made otherwise than those the model learned from: {', '.join(map(str, differences))}",
            advice=f"they are {own.describe()}, the model needs {recipe.describe()}; give raw text, or import it so",
        )
    return corpus
