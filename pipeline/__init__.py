"""The corridor: corpus to tiles to model. Public names are loaded when they are first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramline.pipeline.append import append_gram as append_gram
    from gramline.pipeline.build import build_gram as build_gram
    from gramline.pipeline.corpus.corpus import Corpus as Corpus
    from gramline.pipeline.crossval import cross_validate as cross_validate
    from gramline.pipeline.executors.dask_cluster import connect as connect
    from gramline.pipeline.export import export_gram as export_gram
    from gramline.pipeline.labeler import KernelLabeler as KernelLabeler
    from gramline.pipeline.stored_gram import StoredGram as StoredGram
    from gramline.pipeline.verify import verify_gram as verify_gram

_HOMES = {
    "Corpus": "gramline.pipeline.corpus.corpus",
    "KernelLabeler": "gramline.pipeline.labeler",
    "StoredGram": "gramline.pipeline.stored_gram",
    "append_gram": "gramline.pipeline.append",
    "build_gram": "gramline.pipeline.build",
    "connect": "gramline.pipeline.executors.dask_cluster",
    "cross_validate": "gramline.pipeline.crossval",
    "export_gram": "gramline.pipeline.export",
    "verify_gram": "gramline.pipeline.verify",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
