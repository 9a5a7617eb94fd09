"""What a reader noticed that was perhaps not meant: notes are records, and whoever shows them makes the sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

ONE_LABEL = "one label"
UNKNOWN_MARK = "?"
FEW = 3  # names that a note lists
IN_ENTITY = ("B-", "I-", "E-", "S-", "L-", "U-")
# Parts of speech of the Penn Treebank and of Universal Dependencies; labels of another task are hardly among them.
_PENN = (
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT PRP PRP$ RB RBR RBS RP TO UH VB VBD VBG VBN VBP VBZ WDT WP"
)
_UNIVERSAL = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ VERB"
PARTS_OF_SPEECH = frozenset(f"{_PENN} {_UNIVERSAL}".split())
FEWEST_NUMBERED = 3  # tokens 1, 2, 3 that are no chance
FEWEST_PARTS = 3  # distinct parts of speech that are no chance


@dataclass(frozen=True)
class Note:
    """One remark on a file: a name for programs, what was seen, what to do about it, and where."""

    kind: str
    problem: str
    advice: str = ""
    path: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.path is None else self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{f'{place}: ' if place else ''}{self.problem}" + (f"; {self.advice}" if self.advice else "")

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what is not known is left out."""
        return {name: value for name, value in vars(self).items() if value not in (None, "")}


def repeated_ids(ids: Sequence[str], path: str | Path, lines: Sequence[int]) -> Iterator[Note]:
    """A note on structures that have the id of an earlier one."""
    first: dict[str, int] = {}
    again = [k for k, name in enumerate(ids) if first.setdefault(name, k) != k]
    if again:
        place, name = again[0], ids[again[0]]
        more = f", and {len(again) - 1} more repeat one" if len(again) > 1 else ""
        problem = f"the id {name!r} is that of line {lines[first[name]]} already{more}"
        yield Note("repeated id", problem, "ids name predictions, make them distinct", str(path), lines[place])


def label_notes(counts: dict[str, int], path: str | Path, *, has_missing_label: bool = True) -> Iterator[Note]:
    """Notes on label counts: a single label, or a label that says there is none."""
    used = [name for name, number in counts.items() if number]
    if len(used) == 1:
        problem = f"every labeled position has the label {used[0]!r}: there is nothing to learn"
        yield Note(ONE_LABEL, problem, path=str(path))
    if counts.get(UNKNOWN_MARK):
        option = "--missing-label '?' reads it as no label" if has_missing_label else "write null where there is none"
        problem = f"{UNKNOWN_MARK!r} is the label of {counts[UNKNOWN_MARK]:,} positions"
        yield Note("unknown mark", problem, option, str(path))


def column_notes(columns: Sequence[Sequence[str]], taken: int, word: int, path: str | Path) -> Iterator[Note]:
    """A note where the column of labels looks like parts of speech, or another one more like labels."""
    chosen = taken % len(columns)
    distinct = set(columns[chosen])
    if not _is_entities(distinct):
        for number, column in enumerate(columns):
            if number not in (chosen, word) and _is_entities(set(column)):
                advice = f"give --label-column {number} if it is the label"
                problem = f"column {number} holds labels like {_examples(column)}, but column {chosen} was taken"
                yield Note("label column", problem, advice, str(path))
                return
    parts = distinct & PARTS_OF_SPEECH
    if len(parts) >= FEWEST_PARTS and len(parts) >= len({name for name in distinct if name.isalpha()}) / 2:
        problem = f"the labels in column {chosen} look like parts of speech ({_examples(columns[chosen])})"
        yield Note("parts of speech", problem, "give --label-column if another one is meant", str(path))


def numbering_note(
    columns: Sequence[Sequence[str]], word: int, starts: Sequence[int], path: str | Path
) -> Iterator[Note]:
    """A note where the words are 1, 2, 3, ... in every sentence: a number stands where the word is expected."""
    words = columns[word]
    counted = [str(place) for first, last in pairwise(starts) for place in range(1, last - first + 1)]
    if len(words) >= FEWEST_NUMBERED and list(words) == counted:
        problem = f"column {word}, which is read as the word, counts the tokens of a sentence"
        advice = f"give --word-column {word + 1} if the word comes next"
        yield Note("numbered tokens", problem, advice, str(path))


def _is_entities(names: set[str]) -> bool:
    """Whether names are those of entities or chunks: O, B-... and I-..., and hardly anything else."""
    inside = {name for name in names if name.startswith(IN_ENTITY) and len(name) > 2}
    return bool(inside) and names <= inside | {"O", "_", "-"}


def _examples(column: Sequence[str]) -> str:
    return ", ".join(name for name, _ in islice(Counter(column).most_common(), FEW))
