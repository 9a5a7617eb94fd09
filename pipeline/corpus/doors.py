"""A corpus of what others hold: files in any format, data frames, rows of data sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramline.pipeline.choices import CorpusFormat
from gramline.pipeline.corpus.constructors import CheckedTable
from gramline.pipeline.corpus.frames import FrameColumns, Sentences, from_frame, from_mappings, named_tags, tag_names
from gramline.pipeline.corpus.recipe import LISTS, Recipe
from gramline.pipeline.corpus.validation import name_list
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.files import path_text

if TYPE_CHECKING:
    from gramline.pipeline.corpus.corpus import Corpus


class OutsideData(CheckedTable):
    """The constructors of `Corpus` that read formats of others."""

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: CorpusFormat | None = None,
        labels: Iterable[str] | None = None,
        like: Corpus | None = None,
        **options: Any,
    ) -> Corpus:
        """A file in any format that `gramline corpus import` reads, or a corpus (.parquet).

        Parameters
        ----------
        path : the file; its name decides the format unless that is given.
        labels : the label names in the order that breaks ties.
        like : a training corpus, whose label names and kept template features are taken over.
        options : those of the command, such as features="spelling", window=1, label_column=2, label="NER".

        >>> from gramline.pipeline import Corpus
        >>> _ = Path("train.conll").write_text("Ann B\\nsaw O\\n")
        >>> Corpus.read("train.conll", features="spelling").recipe.describe()
        'conll, spelling features with a window of 1'
        """
        from gramline.pipeline.corpus.corpus import Corpus  # which is made of this class
        from gramline.pipeline.corpus.imports import import_corpus

        path = path_text(path)
        if path.endswith(".parquet"):
            given = [
                name for name, value in (("format", format), ("labels", labels), ("like", like)) if value is not None
            ]
            if given or options:
                problem = f"{[*given, *options][0]} has no effect on a corpus that was read already"
                raise CorpusError(problem, advice="leave it out, or read the file that it was made from")
            return Corpus.load(path)
        return import_corpus(path, format, labels=labels, like=like, options=options, written=str)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        tokens: str = "tokens",
        labels: str | None = None,
        *,
        sentence: str | None = None,
        columns: Sequence[str] = (),
        features: str = "token",
        window: int | None = None,
        label_names: Sequence[str] | None = None,
    ) -> Corpus:
        """Token sequences of a data frame, by the names of its columns.

        Parameters
        ----------
        frame : with one row per token and a column that names its sentence, or with one row per sentence and lists in
            its columns. An empty sentence id continues the sentence above.
        tokens, labels : the columns of words (or feature sets) and of labels.
        sentence : the column of sentence ids; None for one row per sentence.
        columns : further columns of a token, such as its part of speech, which a feature set reads.
        features, window : as for `read_conll`.
        label_names : the label names in the order that breaks ties, and the names of labels that are numbers.

        >>> from gramline.pipeline import Corpus
        >>> frame = {"id": [1, 1, 2], "word": ["they", "run", "Ann"], "tag": ["P", "V", "N"]}
        >>> Corpus.from_pandas(frame, "word", "tag", sentence="id").labels
        [['P', 'V'], ['N']]
        """
        further = name_list(columns, "columns", "names of columns")
        sentences = from_frame(frame, FrameColumns(tokens, labels, sentence, further))
        return cls._of_sentences(sentences, features, window, 1 + len(further), label_names)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Any],
        tokens: str = "tokens",
        labels: str | None = None,
        *,
        label_names: Sequence[str] | None = None,
        features: str = "token",
        window: int | None = None,
    ) -> Corpus:
        """Token sequences of rows, one mapping per sentence, as data sets of Hugging Face have them.

        Parameters
        ----------
        rows : mappings, or a data set that gives them.
        tokens, labels : the keys of the tokens and of their tags, strings or whole numbers; -100 is no label.
        label_names : the names of numbered tags, in the order that breaks ties; those that `rows` declares by default.
        features, window : as for `read_conll`.

        >>> from gramline.pipeline import Corpus
        >>> rows = [{"tokens": ["Ann", "ran"], "ner_tags": [1, 0]}]
        >>> Corpus.from_rows(rows, labels="ner_tags", label_names=["O", "B-PER"]).labels
        [['B-PER', 'O']]
        """
        names = tag_names(rows, labels) if label_names is None else label_names
        return cls._of_sentences(from_mappings(rows, tokens, labels), features, window, 1, names)

    @classmethod
    def _of_sentences(
        cls, sentences: Sentences, features: str, window: int | None, columns: int, names: Sequence[str] | None
    ) -> Corpus:
        names = None if names is None else name_list(names, "label_names", "label names")
        recipe = Recipe.of(LISTS, "sequences", features, window, columns)
        corpus = recipe.corpus_of(sentences.tokens, named_tags(sentences.tags, names), labels=names)
        return corpus if sentences.ids is None else corpus.with_column("id", sentences.ids)
