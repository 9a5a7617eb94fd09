"""What a command cost: its last line, and "cost" in its JSON; money where a price is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from math import floor, log10
from typing import Any, TypeVar, cast

import click

from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Number
from gramline.pipeline.cli.terminal.output import GLUE, count, duration, folded, size
from gramline.pipeline.cost import Cost, Spent, measured
from gramline.pipeline.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
PRICE = "--price-per-core-hour"
HEAD = 8  # columns before the words, as at the end of most commands


@dataclass(frozen=True)
class Bill:
    """What a command has spent so far, and what an hour of a processor costs, where that is known."""

    spent: Spent
    price: float | None = None

    @property
    def cost(self) -> Cost:
        return self.spent.cost

    def result(self) -> dict[str, Any]:
        """What `--json` says of it, besides the result itself."""
        cost = self.cost
        money = {} if self.price is None else {"price_per_core_hour": self.price, "money": cost.money(self.price)}
        return {"cost": cost.to_dict() | money}

    def say(self, *, head: int = HEAD, err: bool = False) -> None:
        """One line at the end, broken only between its parts; on stderr where stdout is for predictions."""
        parts = (part.replace(" ", GLUE) for part in cost_words(self.cost, self.price))
        line = folded(", ".join(parts), f"{'cost':<{head}}", " " * head)
        click.echo(line.replace(GLUE, " "), err=err)


def cost_words(cost: Cost, price: float | None = None) -> list[str]:
    """The parts of a cost in words; what is 0 is left out, but for the times."""
    words = [duration(cost.wall_seconds), f"{duration(cost.processor_seconds)} of processor"]
    if cost.peak_bytes:
        words.append(f"{size(cost.peak_bytes)} of memory")
    if cost.kernel_values:
        words.append(count(cost.kernel_values, "kernel value"))
    if cost.bytes_written:  # tiles of a factor are written and read, but are no tiles of the matrix
        written = size(cost.bytes_written)
        words.append(f"{count(cost.tiles_kept, 'tile')} kept ({written})" if cost.tiles_kept else f"{written} written")
    if cost.bytes_read:
        read = size(cost.bytes_read)
        words.append(f"{count(cost.tiles_read, 'tile')} read ({read})" if cost.tiles_read else f"{read} read")
    if cost.tiles_not_kept:
        words.append(f"{count(cost.tiles_not_kept, 'tile')} computed and not kept")
    if price is not None:
        words.append(f"at {price:g} a core hour: {_money(cost.money(price))}")
    return words


def _money(amount: float) -> str:
    """Two decimals, or more where that would show nothing: 12.34, 0.05, 0.00028."""
    return f"{amount:,.{2 if amount >= 0.01 or amount <= 0 else 1 - floor(log10(amount))}f}"


def cost_option(command: F) -> F:
    """Adds `--price-per-core-hour`, and hands the command a `bill` that counts from its first line on."""

    @wraps(command)
    def counting(*, price_per_core_hour: float | None, **arguments: Any) -> Any:
        with measured() as spent:
            return command(bill=Bill(spent, price_per_core_hour), **arguments)

    described = "What an hour of one core costs, in any currency: the cost is told in money, too."
    return click.option(PRICE, type=float, metavar="PRICE", callback=_price, help=described)(cast(F, counting))


def _price(_context: click.Context, _option: click.Parameter, price: float | None) -> float | None:
    return None if price is None else plain_value(PRICE, Number(above=0), price, InputError)
