"""The corridor: corpus to tiles to model. Public names are loaded when they are first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramline.pipeline.corpus.corpus import Corpus as Corpus
    from gramline.pipeline.crossval.validate import cross_validate as cross_validate
    from gramline.pipeline.executors.dask import connect as connect
    from gramline.pipeline.gram.append import append_gram as append_gram
    from gramline.pipeline.gram.build import build_gram as build_gram
    from gramline.pipeline.gram.export import export_gram as export_gram
    from gramline.pipeline.gram.stored import StoredGram as StoredGram
    from gramline.pipeline.gram.verify import verify_gram as verify_gram
    from gramline.pipeline.models.labeler import KernelLabeler as KernelLabeler

_HOMES = {
    "Corpus": "gramline.pipeline.corpus.corpus",
    "KernelLabeler": "gramline.pipeline.models.labeler",
    "StoredGram": "gramline.pipeline.gram.stored",
    "append_gram": "gramline.pipeline.gram.append",
    "build_gram": "gramline.pipeline.gram.build",
    "connect": "gramline.pipeline.executors.dask",
    "cross_validate": "gramline.pipeline.crossval.validate",
    "export_gram": "gramline.pipeline.gram.export",
    "verify_gram": "gramline.pipeline.gram.verify",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
