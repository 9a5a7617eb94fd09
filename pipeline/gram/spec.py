"""Everything that decides the numbers of a Gram matrix, kept apart from everything that only decides its speed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.packing import Packed
from gramline.kernels.parameters import plain_value
from gramline.kernels.priors import EmpiricalPrior, LearnedPrior
from gramline.kernels.value_kinds import Choice
from gramline.pipeline.choices import Dtype
from gramline.pipeline.corpus.packed import packed_fingerprint
from gramline.pipeline.errors import StoreError

FORMAT = 1  # the version of the store's layout on disk; another one is refused
FEW = 8  # entries of a list that a sentence repeats
DEFAULT_KERNELS = {  # by kind of corpus
    "sequences": "sequence-labeling",
    "trees": "tree-labeling",
    "dags": "dag-labeling",
    "parses": "subset-tree",
    "tagged": "tagging",
}


def kernel_for(description: Mapping[str, Any], kind: str) -> Kernel:
    """The kernel that a dictionary describes, for a corpus of `kind`; the default of that kind where it has no name."""
    kernel = from_dict({"name": DEFAULT_KERNELS[kind], **description}, Kernel)  # type: ignore[type-abstract]
    kernel.require_kind(kind)
    return kernel


@dataclass(frozen=True)
class GramSpec:
    """What decides the numbers: two builds with equal specs give equal matrices, whatever machines they ran on."""

    kernel: dict[str, Any]  # the kernel's small dictionary
    rows: tuple[str, ...]  # fingerprint of the row corpus, and of every corpus appended to it
    cols: str | None  # fingerprint of the column corpus; None when the columns are the rows
    dtype: str  # of the stored tiles
    format: int = FORMAT

    def __post_init__(self) -> None:
        plain_value("dtype", Choice(get_args(Dtype)), self.dtype, StoreError)

    @classmethod
    def of(cls, kernel: Kernel, rows: Packed, cols: Packed | None, dtype: str) -> GramSpec:
        """The spec of a kernel between packed corpora (not yet prepared by the kernel)."""
        # Through JSON and back, so that it compares equal to what a store remembers.
        description = json.loads(json.dumps(kernel.to_dict()))
        return cls(description, (packed_fingerprint(rows),), None if cols is None else packed_fingerprint(cols), dtype)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"rows": list(self.rows)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> GramSpec:
        return cls(**{**description, "rows": tuple(description["rows"])})

    def differs_in_rows_only(self, other: GramSpec) -> bool:
        """Whether everything else that decides the numbers is the same."""
        return replace(self, rows=()) == replace(other, rows=())

    def fingerprint(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def differences(self, other: GramSpec) -> str | None:
        """What a store of this spec has that `other` asks for otherwise, in words; None when they are equal."""
        changes = list(_changes("kernel", self.kernel, other.kernel))
        if self.rows != other.rows:
            appended = f" with {len(self.rows) - 1} appended to it" if len(self.rows) > 1 else ""
            same = appended and self.rows[: len(other.rows)] == other.rows
            changes.append(f"corpus: it holds {'this' if same else 'another'} one{appended}")
        if (self.cols is None) != (other.cols is None):
            changes.append(f"shape: it is {'symmetric' if self.cols is None else 'between two corpora'}")
        elif self.cols != other.cols:
            changes.append("second corpus: it holds another one")
        for name, mine, theirs in (("dtype", self.dtype, other.dtype), ("format", self.format, other.format)):
            if mine != theirs:
                changes.append(f"{name}: {mine} instead of {theirs}")
        return "; ".join(changes) or None


def has_learned_prior(kernel: Kernel | None) -> bool:
    """True for a kernel whose prior a learner makes."""
    return isinstance(kernel, PositionLabeling) and isinstance(kernel.prior, LearnedPrior)


def counts_labels(kernel: Kernel | None) -> bool:
    """True for a kernel whose values depend on all training labels: it has a prior that counts them or learns."""
    return isinstance(kernel, PositionLabeling) and isinstance(kernel.prior, EmpiricalPrior | LearnedPrior)


def _changes(path: str, mine: Any, theirs: Any) -> Iterator[str]:
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping) and mine.get("name") == theirs.get("name"):
        for key in sorted({*mine, *theirs}):
            yield from _changes(f"{path}.{key}", mine.get(key), theirs.get(key))
    elif mine != theirs:
        this, other = _in_words(mine), _in_words(theirs)
        yield f"{path}: {this} instead of {other}" if this != other else f"{path}: other values in {this}"


def _in_words(value: Any) -> str:
    """A parameter in a sentence: a record by its name, whose own parameters count only beside one of the same name."""
    if isinstance(value, Mapping) and "name" in value:
        return str(value["name"])
    if value is None:
        return "none"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return f"a matrix of {len(value)} rows"
    if isinstance(value, list) and len(value) > FEW:
        return f"a list of {len(value)} entries"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
