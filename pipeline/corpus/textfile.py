"""Text files line by line: UTF-8, plain or gzip, LF or CRLF; what cannot be read is refused with file and line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from gramline.pipeline.errors import CorpusError
from gramline.pipeline.files import path_text

_GZIP_MAGIC = b"\x1f\x8b"
LIMIT_BYTES = 1 << 32  # of one text file, all of which is held in memory
FREE_BYTES, EXPANSION = 1 << 26, 200  # beyond so many bytes, text that gzip made so many times smaller is no text
PIECE_BYTES = 1 << 22
EXCERPT = 60  # characters of an input that an error repeats


def read_lines(path: str | Path) -> list[str]:
    """The lines of a file without their ends; split at line feeds only, since other separators may be words."""
    source = Path(path_text(path))
    try:
        if source.stat().st_size > LIMIT_BYTES:
            problem = f"{source} holds more than {LIMIT_BYTES:,} bytes"
            raise CorpusError(problem, advice="cut it into several files")
        content = source.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, CorpusError):
            raise
        raise CorpusError(f"cannot read {source}: {getattr(error, 'strerror', None) or error}") from None
    if content.startswith(_GZIP_MAGIC):
        content = _expanded(content, source)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        advice = "convert the file to UTF-8"
        raise CorpusError("not UTF-8 text", advice=advice, path=str(source), line=line) from None
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _expanded(content: bytes, source: Path) -> bytes:
    """What gzip holds, piece by piece: a small file that expands without end is refused on the way."""
    limit = min(LIMIT_BYTES, max(FREE_BYTES, EXPANSION * len(content)))
    pieces: list[bytes] = []
    try:
        with gzip.open(BytesIO(content)) as stream:
            while piece := stream.read(PIECE_BYTES):
                pieces.append(piece)
                if len(pieces) * PIECE_BYTES > limit + PIECE_BYTES:
                    problem = f"{source} expands to more than {limit:,} bytes"
                    raise CorpusError(problem, advice="unpack it and look at what it holds")
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{source} is a damaged gzip file ({error})", advice="fetch it again") from None
    return b"".join(pieces)


def excerpt(text: str) -> str:
    """An input as an error repeats it: quoted, and not all of it when it is long."""
    return repr(text) if len(text) <= EXCERPT else f"{text[:EXCERPT]!r}... ({len(text):,} characters)"


def located(error: CorpusError, path: str | Path, lines: Sequence[int]) -> CorpusError:
    """The same error with the file, and the line on which its structure begins."""
    return error.at(path=str(path), line=None if error.structure is None else lines[error.structure])
