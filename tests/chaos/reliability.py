"""The table of faults: what was done, how often, what it cost. `make chaos` writes docs/reliability.md."""

from __future__ import annotations

from dataclasses import dataclass, field

from measured_page import conditions, tell

HEAD = ("fault", "times", "tiles lost", "wrong tiles", "seconds to recover")


@dataclass
class Row:
    """One kind of fault."""

    fault: str
    times: int = 0
    lost: int = 0
    wrong: int = 0
    seconds: list[float] = field(default_factory=list)

    def cells(self) -> tuple[str, ...]:
        slowest = f"{max(self.seconds):.1f}" if self.seconds else "-"
        return self.fault, str(self.times), str(self.lost), str(self.wrong), slowest


class Ledger:
    """Collects rows while the tests run."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self._conditions = conditions()

    def note(self, fault: str, *, times: int = 1, lost: int = 0, wrong: int = 0, seconds: float | None = None) -> None:
        """Add to the row of a fault; `seconds` from the fault to the next finished tile, or to the repaired store."""
        row = self.rows.setdefault(fault, Row(fault))
        row.times, row.lost, row.wrong = row.times + times, row.lost + lost, row.wrong + wrong
        if seconds is not None:
            row.seconds.append(seconds)

    def table(self) -> str:
        """For a terminal."""
        rows = [HEAD, *(row.cells() for row in self.rows.values())]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEAD))]
        return "\n".join(
            row[0].ljust(widths[0])
            + "".join(f"  {cell.rjust(width)}" for cell, width in zip(row[1:], widths[1:], strict=True))
            for row in rows
        )

    def markdown(self) -> str:
        rows = [HEAD, ("---", *["--:"] * (len(HEAD) - 1)), *(row.cells() for row in self.rows.values())]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def tell(self) -> None:
        tell("chaos", self.table(), f"{self.markdown()}\n\n{self._conditions}")
