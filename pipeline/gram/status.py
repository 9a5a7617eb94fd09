"""What a store of a Gram matrix holds, and how much of it is done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gramline.pipeline.errors import StoreError


@dataclass(frozen=True)
class GramStatus:
    """What a store holds and how much of it is done."""

    path: str
    shape: tuple[int, int]
    is_symmetric: bool
    n_structures: tuple[int, int]
    dtype: str
    compression: str
    block_rows: int
    n_tiles: int  # that are kept
    n_present: int
    n_left_out: int  # computed when they are asked for
    keep: str  # all, none, or how many bytes
    stored_bytes: int  # of the tiles that are there
    n_segments: int  # 1, and one more per append
    kernel: dict[str, Any]
    fingerprint: str

    @property
    def is_complete(self) -> bool:
        return self.n_present == self.n_tiles

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"is_complete": self.is_complete}

    def require_complete(self) -> None:
        """Before something reads all of it: better now than in the middle."""
        if not self.is_complete:
            raise StoreError(
                f"{self.path} has {self.n_present:,} of {self.n_tiles:,} tiles",
                advice="finish it with `gramline gram build`",
            )
