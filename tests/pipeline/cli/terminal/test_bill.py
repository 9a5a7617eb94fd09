"""The last line of a command, "cost" in its JSON, and the price of a core hour."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.cli.terminal.bill import Bill, cost_words
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import Cost, Spent
from gramline.pipeline.models.model import Model

LARGE = Cost(7384.2, 14_000.0, 70_073_531_000, 9000, 8256, 123_456, 2 * 10**12, 140 * 10**9, 10**9)


def test_the_words() -> None:
    assert cost_words(LARGE, 0.05) == [
        "2 h 3 min",
        "3 h 53 min of processor",
        "1.0 GB of memory",
        "70,073,531,000 kernel values",
        "8,256 tiles kept (140.0 GB)",
        "123,456 tiles read (2.0 TB)",
        "744 tiles computed and not kept",
        "at 0.05 a core hour: 0.19",
    ]
    assert cost_words(Cost(0.2, 0.1)) == ["0.2 s", "0.1 s of processor"]
    assert cost_words(Cost(bytes_read=2000, bytes_written=3000))[2:] == ["3.0 kB written", "2.0 kB read"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3600 * 24_681.0, "1,234.05"), (3600.0, "0.05"), (1.0, "0.000014"), (0.0, "0.00")],
)
def test_money_is_never_rounded_to_nothing(seconds: float, said: str) -> None:
    assert cost_words(Cost(processor_seconds=seconds), 0.05)[-1] == f"at 0.05 a core hour: {said}"


@pytest.mark.parametrize("head", [8, 9])
def test_it_is_one_line_within_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, head: int
) -> None:
    monkeypatch.setattr(Spent, "cost", LARGE)
    Bill(Spent(), 0.05).say(head=head)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("cost" + " " * (head - 4) + "2 h 3 min, ")
    assert all(line.startswith(" " * head) for line in lines[1:])
    assert [line.endswith(",") for line in lines] == [True] * (len(lines) - 1) + [False]  # parts stay whole


def cost_of(answer: Any) -> Cost:
    assert answer.code == 0, answer.err
    return Cost.from_dict(answer.json["cost"])


def test_builds_tell_their_cost(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    gram = tmp_path / "g.zarr"
    cost = cost_of(gramline("gram", "build", corpus, "-o", gram, "--inline", "--block-rows", "5", "--json"))
    assert (cost.kernel_values, cost.tiles_kept, cost.tiles_computed, cost.tiles_read) == (142, 10, 10, 0)
    assert cost.bytes_written == 10 * 8 * 25
    assert cost.wall_seconds > 0
    more = tmp_path / "more.parquet"
    Corpus.from_sequences([["a", "dog"]], [["D", "N"]]).save(more)
    grown = cost_of(gramline("gram", "append", gram, more, "--inline", "--json"))
    assert (grown.kernel_values, grown.tiles_kept) == (15 * 2 + 4, 5)
    said = gramline("gram", "build", corpus, "-o", tmp_path / "h.zarr", "--inline").out
    assert said.splitlines()[-2].startswith("cost    ")
    assert "225 kernel values, 1 tile kept (2.1 MB)" in " ".join(said.split())


def test_workers_of_a_local_cluster_count(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    build = ("gram", "build", corpus, "--block-rows", "5", "--json", "-o")
    alone = cost_of(gramline(*build, tmp_path / "a.zarr", "--inline"))
    together = cost_of(gramline(*build, tmp_path / "b.zarr", "--workers", "2"))
    for name in ("kernel_values", "tiles_computed", "tiles_kept", "tiles_read", "bytes_read", "bytes_written"):
        assert vars(together)[name] == vars(alone)[name], name


def test_trainings_and_predictions_tell_their_cost(gramline: Any, gram: Path, corpus: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.zarr"
    fitted = cost_of(gramline("fit", gram, "-o", model, "--json"))
    assert fitted.tiles_read >= 10
    assert fitted.kernel_values == 0
    kept = Model.load(model).cost
    assert kept is not None
    assert (kept.tiles_read, kept.bytes_read) == (fitted.tiles_read, fitted.bytes_read)
    said = gramline("fit", corpus, "-o", tmp_path / "n.zarr").out
    assert said.splitlines()[-2].startswith("cost     ")
    assert cost_of(gramline("predict", model, corpus, "--json")).kernel_values > 0
    assert cost_of(gramline("evaluate", model, corpus, "--json")).tiles_not_kept == 1
    assert "\ncost    " in gramline("evaluate", model, corpus).out


def test_predictions_on_stdout_stay_clean(gramline: Any, model: Path, corpus: Path, tmp_path: Path) -> None:
    answer = gramline("predict", model, corpus)
    assert [set(json.loads(line)) for line in answer.out.splitlines()] == [{"id", "tokens", "labels"}] * 5
    assert answer.err.startswith("cost    ")
    written = gramline("predict", model, corpus, "-o", tmp_path / "p.jsonl")
    assert "\ncost    " in written.out
    assert written.err == ""


def test_cross_validations_tell_and_keep_their_cost(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    command = ("cv", corpus, "--folds", "2", "--inline", "--no-baselines", "-o", tmp_path / "cv.run", "--json")
    first = cost_of(gramline(*command))
    assert first.kernel_values == 225
    kept = Cost.from_dict(json.loads((tmp_path / "cv.run" / "cost.json").read_text()))
    assert (kept.kernel_values, kept.tiles_kept, kept.tiles_read) == (225, 1, first.tiles_read)
    assert cost_of(gramline(*command)).kernel_values == 0
    again = Cost.from_dict(json.loads((tmp_path / "cv.run" / "cost.json").read_text()))
    assert again.kernel_values == 225
    assert again.wall_seconds > kept.wall_seconds
    assert gramline("report", tmp_path / "cv.run").code == 0
    page = re.sub("<.*?>", "", (tmp_path / "cv.run" / "report.html").read_text("utf-8"))
    assert "225 kernel values; tiles: 1 kept" in page


def test_a_price_gives_money(gramline: Any, model: Path, corpus: Path) -> None:
    answer = gramline("evaluate", model, corpus, "--price-per-core-hour", "0.05", "--json")
    cost = answer.json["cost"]
    assert cost["price_per_core_hour"] == 0.05
    assert cost["money"] == cost["processor_seconds"] / 3600 * 0.05
    said = gramline("evaluate", model, corpus, "--price-per-core-hour", "0.05").out
    assert "at 0.05 a core hour: 0.0" in said
    assert "money" not in gramline("evaluate", model, corpus, "--json").json["cost"]


@pytest.mark.parametrize("command", ["gram build", "gram append", "fit", "cv", "predict", "evaluate"])
@pytest.mark.parametrize("price", ["0", "-1", "nan", "inf", "cheap"])
def test_a_price_that_is_none_is_refused(gramline: Any, command: str, price: str) -> None:
    answer = gramline(*command.split(), "a", "b", "--price-per-core-hour", price)
    assert answer.code == 2
    assert "--price-per-core-hour" in answer.error


def test_a_command_that_fails_tells_no_cost(gramline: Any, model: Path, tmp_path: Path) -> None:
    answer = gramline("evaluate", model, tmp_path / "nothing.parquet", "--price-per-core-hour", "1")
    assert answer.code == 2
    assert "cost" not in answer.out + answer.error
