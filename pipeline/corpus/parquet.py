"""A corpus on disk: one Parquet file, written whole or not at all, read back with its kind and label order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gramline.pipeline.errors import CorpusError
from gramline.pipeline.files import path_text, write_then_rename

METADATA_KEY = b"gramline.corpus"
FORMAT_VERSION = 1
DESCRIPTION_KEYS = ("kind", "label_names", "fingerprint")
MAGIC = b"PAR1"  # what every Parquet file begins with
IMPORT_AGAIN = "import the corpus again"
ADVICE = "give the path of a corpus that `gramline corpus import` or `generate` wrote"


def write_table(table: pa.Table, path: str | Path, description: Mapping[str, Any]) -> None:
    """Write to a temporary file beside `path`, then rename: a reader sees the old file or the new one."""
    target = Path(path_text(path))
    content = json.dumps({"version": FORMAT_VERSION, **description})
    described = table.replace_schema_metadata({METADATA_KEY: content.encode()})
    try:
        with write_then_rename(target) as partial:
            pq.write_table(described, partial, compression="zstd", write_page_checksum=True)
    except OSError as error:
        raise CorpusError(f"cannot write the corpus to {target}: {error.strerror or error}") from None


def read_table(path: str | Path) -> tuple[pa.Table, dict[str, Any]]:
    """The table and its description; anything else than a corpus file is refused in one line."""
    source = Path(path_text(path))
    if not source.is_file():
        advice = "make one with `gramline corpus import` or `generate`"
        raise CorpusError(f"there is no corpus file at {source}", advice=advice)
    try:
        table = pq.ParquetFile(source, page_checksum_verification=True).read()
    except (pa.ArrowException, OSError):
        raise _unreadable(source) from None
    content = (table.schema.metadata or {}).get(METADATA_KEY)
    if content is None:
        raise CorpusError(f"{source} is not a corpus but a Parquet file of something else", advice=ADVICE)
    try:
        description = json.loads(content)
    except ValueError:
        description = None
    if not isinstance(description, dict) or not description.keys() >= {"version", *DESCRIPTION_KEYS}:
        raise CorpusError(f"{source} is damaged: its description cannot be read", advice=IMPORT_AGAIN)
    if description["version"] != FORMAT_VERSION:
        problem = f"{source} has corpus format {description['version']}, this program reads {FORMAT_VERSION}"
        raise CorpusError(problem, advice=IMPORT_AGAIN)
    return table.replace_schema_metadata(None), description


def _unreadable(source: Path) -> CorpusError:
    """What to say of a file that cannot be read as Parquet, by how it begins."""
    try:
        with source.open("rb") as stream:
            beginning = stream.read(len(MAGIC))
    except OSError as error:
        problem = f"cannot read the corpus {source}: {error.strerror or error}"
        return CorpusError(problem, advice="check its permissions")
    if beginning == MAGIC:
        return CorpusError(f"{source} is a damaged Parquet file", advice=IMPORT_AGAIN)
    kind = "a file that is not Parquet" if beginning else "an empty file"
    return CorpusError(f"{source} is not a corpus but {kind}", advice=ADVICE)
