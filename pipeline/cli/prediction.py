"""Predictions of a model in this process, or by workers where options name some."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gramline.learners.arrays import Matrix
from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.models.model import Model

HERE = "this is done in this process"


class Prediction(NamedTuple):
    """What is to be predicted, and where."""

    path: str  # of the model: what travels to workers lies beside it
    given: OptionValues
    block_rows: int | None = None

    def labels(self, model: Model, structures: Corpus) -> list[list[str]]:
        """Of every structure."""
        if not self._has_workers:
            return model.predict(structures, block_rows=self.block_rows)
        return self._on_workers(model, structures, "labels")[0]

    def labels_and_probabilities(self, model: Model, structures: Corpus) -> tuple[list[list[str]], Matrix]:
        """And the probabilities of all labels at every position."""
        if not self._has_workers:
            return model.predict_with_proba(structures, block_rows=self.block_rows)
        labels, table = self._on_workers(model, structures, "probabilities")
        assert table is not None
        return labels, table

    def say_unused(self) -> None:
        """Of what is never done by workers: a scheduler that is named is reached all the same, and told of."""
        if self._has_workers:
            from gramline.pipeline.cli.workplaces import say_unused

            say_unused(load_job(None, self.given), HERE)

    @property
    def _has_workers(self) -> bool:
        cluster = self.given.of("cluster")
        return bool(cluster) and not cluster.get("inline")

    def _on_workers(
        self, model: Model, structures: Corpus, question: Literal["labels", "probabilities"]
    ) -> tuple[list[list[str]], Matrix | None]:
        # Whoever predicts here must not wait for Dask.
        from gramline.pipeline.cli.workplaces import workplace
        from gramline.pipeline.gram.store import absolute
        from gramline.pipeline.gram.strays import sweep_partial
        from gramline.pipeline.models.spread_prediction import predict_on_workers

        with workplace(load_job(None, self.given)) as place, place.open() as executor:
            place.why_unused = HERE
            place_of_letters = absolute(self.path)  # workers have folders of their own
            sweep_partial(place_of_letters)
            return predict_on_workers(
                model, structures, executor, place_of_letters, block_rows=self.block_rows, question=question
            )
