"""Structures labeled as they arrive, line by line: JSON lines, or blocks of CoNLL columns that a blank line ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from gramline.kernels.errors import LocatedError
from gramline.pipeline.corpus.recipe import BEFORE_WORD, Recipe
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.predictions import PREDICTED, Predictions, by_label
from gramline.pipeline.models.write_back import annotated_columns, token_fields

StreamFormat = Literal["conll", "jsonl"]


def decoded(lines: Iterable[bytes], source: str) -> Iterator[str]:
    """Lines of UTF-8 text without their ends."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text", advice="convert it to UTF-8", path=source, line=number) from None


class LabeledStream:
    """Answers every structure with its lines and the predicted labels before it reads the next one."""

    def __init__(self, model: Model, source: str, layout: StreamFormat | None, *, probabilities: bool) -> None:
        """`layout` None: JSON lines where the first line begins with a brace."""
        if model.support.kind != "sequences":
            raise InputError(
                f"the model labels {model.support.kind}, which do not come as lines of tokens", advice="give a file"
            )
        self._model, self._source, self._layout, self._probabilities = model, source, layout, probabilities

    def answers(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The lines that answer one structure, as soon as it is there."""
        block: list[str] = []
        first = 1
        for number, line in enumerate(lines, start=1):
            if self._layout is None and line.strip():
                self._layout = "jsonl" if line.lstrip().startswith("{") else "conll"
            if self._layout == "jsonl":
                if line.strip():
                    yield [self._record(line, number)]
                continue
            if line.strip(" \t"):
                first = number if not block else first
                block.append(line)
            elif block:
                yield [*self._columns(block, first), ""]
                block = []
        if block:
            yield [*self._columns(block, first), ""]

    def _record(self, line: str, number: int) -> str:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not a JSON object ({error})", path=self._source, line=number) from None
        if not isinstance(record, dict) or not isinstance(record.get("tokens"), list):
            problem = "expected a JSON object whose key 'tokens' holds a list"
            raise InputError(problem, path=self._source, line=number)
        predictions = self._labeled(record["tokens"], number)
        record[PREDICTED] = list(predictions.labels[0])
        if predictions.probabilities is not None:
            record["probabilities"] = list(predictions.probabilities[0])
        return json.dumps(record, ensure_ascii=False)

    def _columns(self, block: list[str], first: int) -> Iterator[str]:
        recipe = self._model.recipe
        rows = [
            self._row(fields, recipe, first + offset)
            for offset, line in enumerate(block)
            if (fields := token_fields(line, recipe))
        ]
        if not rows:
            return iter(block)
        return annotated_columns(block, self._labeled(rows, first), recipe)

    def _row(self, fields: list[str], recipe: Recipe | None, number: int) -> Any:
        """The columns of a token without its label, which may be there or not; a bare word where one is enough."""
        wanted, before = (1, 0) if recipe is None else (recipe.columns, recipe.option(BEFORE_WORD, 0))
        if len(fields) == before + wanted + 1:
            label = -1 if recipe is None else recipe.option("label_column", -1)
            fields = [field for place, field in enumerate(fields) if place != label % len(fields)]
        if len(fields) != before + wanted:
            raise InputError(
                f"{len(fields)} columns, where a token has {before + wanted}, or one more with the label",
                advice="give the columns of the training corpus",
                path=self._source,
                line=number,
            )
        return fields[before] if wanted == 1 else tuple(fields[before:])

    def _labeled(self, tokens: list[Any], number: int) -> Predictions:
        tables = None
        try:
            if self._probabilities:
                labels, table = self._model.predict_with_proba([tokens])
                tables = by_label([table], self._model.label_names)
            else:
                labels = self._model.predict([tokens])
        except LocatedError as error:
            raise InputError(
                error.problem, advice=error.advice, path=self._source, line=number, position=error.position
            ) from None
        return Predictions([None], [tokens], labels, tables)
