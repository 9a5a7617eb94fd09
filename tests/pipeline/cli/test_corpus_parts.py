"""corpus split, sample and dedupe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.corpus import Corpus


@pytest.fixture
def repeated(tmp_path: Path) -> Path:
    path = tmp_path / "all.parquet"
    corpus = Corpus.from_sequences([[f"w{k % 8}"] for k in range(10)], [["X"]] * 9 + [["Y"]])
    corpus.with_column("source", list("aabbaabbaa")).save(path)
    return path


def test_split(gramline: Any, repeated: Path, tmp_path: Path) -> None:
    train, test = tmp_path / "train.parquet", tmp_path / "test.parquet"
    answer = gramline("corpus", "split", repeated, f"{train}=0.8", f"{test}=0.2", "--seed", "3")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == f"8 structures (80.0%), 8 positions: {train}\n2 structures (20.0%), 2 positions: {test}\n"
    first = Corpus.load(test).ids
    assert sorted([*first, *Corpus.load(train).ids]) == sorted(Corpus.load(repeated).ids)
    told = gramline("corpus", "split", repeated, f"{train}=80%", f"{test}=20%", "--seed", "3", "--json").json
    assert told["parts"][1] == {"path": str(test), "structures": 2, "positions": 2}
    assert Corpus.load(test).ids == first


def test_split_by_groups(gramline: Any, repeated: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert gramline("corpus", "split", repeated, f"{a}=50", f"{b}=50", "--group-duplicates").code == 0
    parts = [{token for row in Corpus.load(part).tokens for token in row} for part in (a, b)]
    assert not parts[0] & parts[1]
    assert gramline("corpus", "split", repeated, f"{a}=60", f"{b}=40", "--group", "source").code == 0
    assert set(Corpus.load(a).column("source")) == {"a"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.parquet"], "a part is PATH=SHARE, such as train.parquet=0.8, got 'train.parquet'"),
        (["train.parquet=much", "b=1"], "a part is PATH=SHARE"),
        (["a.parquet=0.5", "./a.parquet=0.5"], "./a.parquet is given twice; name every part once"),
        (["a.parquet=0.5", "b.parquet=0.6"], "the shares sum to 1.1; make them sum to 1, or to 100"),
        (["a.parquet=1"], "a split has at least two parts"),
        (["a.parquet=0.5", "b.parquet=0.5", "--group", "nowhere"], "the corpus has no column 'nowhere'"),
        (["a.parquet=0.5", "b.parquet=0.5", "--group", "source", "--group-duplicates"], "exclude each other"),
        (["nowhere/a.parquet=0.5", "b.parquet=0.5"], "nowhere"),
    ],
)
def test_splits_that_do_not_fit(
    gramline: Any, repeated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = gramline("corpus", "split", repeated, *arguments)
    assert answer.code == 2
    assert said in answer.error
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]


def test_sample(gramline: Any, repeated: Path, tmp_path: Path) -> None:
    target = tmp_path / "small.parquet"
    answer = gramline("corpus", "sample", repeated, "-n", "4", "-o", target)
    assert (answer.code, answer.out) == (0, f"4 of 10 structures, 4 positions: {target}\n")
    first = Corpus.load(target).ids
    assert gramline("corpus", "sample", repeated, "-n", "4", "-o", target, "--json").json["of"] == 10
    assert Corpus.load(target).ids == first
    assert "cannot draw 11 of 10 structures" in gramline("corpus", "sample", repeated, "-n", "11", "-o", target).error


def test_dedupe(gramline: Any, repeated: Path, tmp_path: Path) -> None:
    target = tmp_path / "once.parquet"
    answer = gramline("corpus", "dedupe", repeated, "-o", target)
    said = f"2 duplicates removed, 1 of them with other labels; 8 structures left: {target}\n"
    assert (answer.code, answer.out) == (0, said)
    told = gramline("corpus", "dedupe", target, "-o", target, "--json").json
    assert (told["removed"], told["removed_with_other_labels"], told["structures"]) == (0, 0, 8)
