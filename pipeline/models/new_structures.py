"""What a model is asked about, described as its training corpus was: a corpus made the same way, or raw sentences."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packable, Packed, check_packable
from gramline.learners.estimator import Learner, is_listed
from gramline.pipeline.choices import CorpusFormat
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import BY_TEMPLATE, LISTS, Recipe
from gramline.pipeline.errors import CorpusError, InputError
from gramline.pipeline.models.raw_sentences import FEW, Needs, RawSentences
from gramline.pipeline.models.support_cross import IndexedSupport

NewStructures = Packable | Packed | Iterable[Any]  # or raw sentences
AS_GIVEN = "token"  # the set of features that leaves tokens as they are
STRANGE = (
    "the model knows none of the features of these structures; where they were imported with other --features than the "
    "training corpus, import them again with the same"
)


class ModelInput:
    """From raw sentences, files and corpora to packed structures in the vocabulary of a model."""

    def __init__(self, support: Packed, recipe: Recipe | None, kernel: Kernel | None, learner: Learner) -> None:
        self._support, self._recipe = support, recipe
        needs_kept = recipe is not None and recipe.needs_kept_features
        self._kept = frozenset(support.vocabulary.features) if needs_kept else None
        self._raw: RawSentences | None = None
        if support.kind == "sequences" and (recipe is None or recipe.format != "fasta"):
            if kernel is not None and IndexedSupport.suits(kernel):
                self._raw = RawSentences(support, recipe, Needs(IndexedSupport.reads_symbols(kernel), True))
            elif kernel is None and learner.fitted().get("feature_names_") == list(support.vocabulary.features):
                self._raw = RawSentences(support, recipe, Needs(False, False))

    def corpus_of(self, sentences: Iterable[Any], y: Iterable[Any] | None = None) -> Corpus:
        """Lists of words, of rows of columns or of features as a corpus of the recipe."""
        if not is_listed(sentences):
            raise CorpusError(f"a model labels a list of sentences or a Corpus, got {type(sentences).__name__}")
        if self._support.kind != "sequences":
            raise CorpusError(f"the model labels {self._support.kind}", advice="give a Corpus of them, not lists")
        return (self._recipe or Recipe(LISTS)).corpus_of(sentences, y, keep=self._kept)

    def read(self, path: str, layout: CorpusFormat | None) -> Corpus:
        """A corpus file, or a raw file read by the recipe."""
        if path.endswith(".parquet") or not Path(path).is_file():
            return Corpus.load(path)  # which says what is wrong with what is no file
        if self._recipe is None:
            raise InputError(
                f"the model does not know how its corpus was made, so it cannot read {path}",
                advice="import it as the training corpus was (`gramline corpus import`), or train the model again",
            )
        return self._recipe.read(path, format=layout, keep=self._kept)

    def packed(self, given: NewStructures, notes: list[str]) -> Packed:
        """The new structures in the model's vocabulary; that it knows none of their features is noted."""
        if not isinstance(given, Packed | Packable):
            packed = self._packed_raw(given, notes)
            if packed is not None:
                return packed
            given = self.corpus_of(given)
        elif isinstance(given, Corpus):
            given = describe_like(given, self._recipe)
        check_packable(given)
        packed = pack_like(given, self._support, "model")
        if packed is not given:
            used = packed.features.indices
            _note_strange(notes, used.size > 0 and int(used.min()) >= len(self._support.vocabulary.features))
            return packed
        known, own = self._support.vocabulary, packed.vocabulary
        for part in ("symbols", "features", "labels"):
            names = getattr(known, part)
            if getattr(own, part)[: len(names)] != names:
                raise InputError(f"the packed corpus has other {part} than the model; pack it with like=model.support")
        return packed

    def _packed_raw(self, sentences: Any, notes: list[str]) -> Packed | None:
        """A few raw sentences without a corpus of them; None where that way does not go."""
        if self._raw is None or not isinstance(sentences, list | tuple) or len(sentences) > FEW:
            return None
        answer = self._raw.pack(sentences)
        if answer is None:
            return None
        _note_strange(notes, answer.is_strange)
        return answer.packed


def _note_strange(notes: list[str], is_strange: bool) -> None:
    if is_strange and STRANGE not in notes:
        notes.append(STRANGE)


def pack_like(corpus: Packable | Packed, support: Packed, what: str) -> Packed:
    """New structures in the vocabulary of the support of a model or a ranker (`what`); another kind is refused."""
    if isinstance(corpus, Corpus | Packed) and corpus.kind != support.kind:
        raise InputError(f"the {what} is for {support.kind}, but the corpus holds {corpus.kind}")
    return corpus if isinstance(corpus, Packed) else corpus.packed(like=support)


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
