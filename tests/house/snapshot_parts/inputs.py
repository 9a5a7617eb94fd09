"""Small inputs: hand-written files, corpora of the built-in generator, and corpora of letters made here."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from snapshot_parts.recording import succeed

from gramline.pipeline import Corpus

CONLL = """the DT B-NP
dog NN I-NP
barks VB B-VP

a DT B-NP
cat NN I-NP
sees VB B-VP
the DT B-NP
Mat-7 NN I-NP

-DOCSTART- -X- O

dogs NN B-NP
sleep VB B-VP

the DT B-NP
cat NN I-NP
sleeps VB B-VP
"""
TEMPLATE = "# neighbours\nU00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[0,0]/%x[0,1]\nU03:%x[1,1]\n\nB\n"
CONLLU = """# text = Dogs bark loudly
1\tDogs\tdog\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\tNER=B
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_
3\tloudly\tloudly\tADV\tRB\t_\t2\tadvmod\t_\tSpaceAfter=No

# text = She sees the old dog
1\tShe\tshe\tPRON\tPRP\tNumber=Sing\t2\tnsubj\t_\tNER=B
2\tsees\tsee\tVERB\tVBZ\t_\t0\troot\t_\t_
3\tthe\tthe\tDET\tDT\t_\t5\tdet\t_\t_
4\told\told\tADJ\tJJ\t_\t5\tamod\t_\t_
5\tdog\tdog\tNOUN\tNN\tNumber=Sing\t2\tobj\t_\tNER=B
"""
JSON_LINES = {
    "words.jsonl": [
        {"id": "one", "tokens": ["the", "dog"], "labels": ["D", "N"]},
        {"id": "two", "tokens": [{"w=a": 1, "length": 0.5}, ["w=cat", "noun"], "x"], "labels": ["D", None, "V"]},
    ],
    "priors.jsonl": [
        {"tokens": ["a", "b"], "labels": ["D", "N"], "prior": [[0.75, 0.25], [0.5, 0.5]]},
        {"tokens": ["b"], "labels": ["N"], "prior": [[0.125, 0.875]]},
    ],
    "trees.jsonl": [{"tokens": ["r", "a", "b"], "children": [[1, 2], [], []], "labels": ["X", "Y", "Y"]}],
    "graphs.jsonl": [{"tokens": ["r", "a", "b"], "edges": [[0, 1], [1, 2], [0, 2]], "labels": ["X", "Y", "X"]}],
    "tagged.jsonl": [
        {"tokens": ["time", "flies"], "tags": ["N", "V"]},
        {"tokens": ["fruit", "flies", "time"], "tags": ["N", "N", "V"]},
        {"tokens": ["flies", "like", "time", "flies"], "tags": ["N", "V", "N", "N"]},
    ],
    "parses.jsonl": [{"tree": ["S", ["NP", "they"], ["VP", ["V", "see"], ["NP", "us"]]]}],
}
TREES = """(S (NP-SBJ-1 (D the) (N dog)) (VP (V barks)))
(S (NP-SBJ (PRP they)) (VP (V see) (NP (-NONE- *)) (NP (D the)
   (N dog))))
( (S (NP (N cats)) (VP (V sleep))) )
"""
LABEL_KERNEL = [[1.0, 0.25, 0.0], [0.25, 1.0, 0.5], [0.0, 0.5, 1.0]]
SYMBOLS = "ABCD"
SUBSTITUTION = [[4.0, 1.0, 0.0, 0.5], [1.0, 3.0, 0.25, 0.0], [0.0, 0.25, 5.0, 1.0], [0.5, 0.0, 1.0, 2.0]]

# One command a line; the corpora that the rest of the snapshot works on.
GENERATED = """
corpus generate saleslog --sentences 9 --seed 1 -o sequences.parquet
corpus generate saleslog --sentences 4 --seed 2 -o sequences-new.parquet
corpus generate saleslog --sentences 3 --seed 3 -o sequences-more.parquet
corpus generate saleslog --sentences 6 --seed 1 --features spelling --window 1 -o sequences-spelled.parquet
corpus generate saleslog --sentences 3 --seed 2 --features spelling --window 1 -o sequences-spelled-new.parquet
corpus generate saleslog --sentences 9 --seed 1 --kind trees -o trees.parquet
corpus generate saleslog --sentences 4 --seed 2 --kind trees -o trees-new.parquet
corpus generate saleslog --sentences 3 --seed 3 --kind trees -o trees-more.parquet
corpus generate saleslog --sentences 6 --seed 1 --kind trees --features words --window 1 -o trees-spelled.parquet
corpus generate saleslog --sentences 3 --seed 2 --kind trees --features words --window 1 -o trees-spelled-new.parquet
corpus generate saleslog --sentences 9 --seed 1 --kind dags -o dags.parquet
corpus generate saleslog --sentences 4 --seed 2 --kind dags -o dags-new.parquet
corpus generate saleslog --sentences 3 --seed 3 --kind dags -o dags-more.parquet
corpus generate saleslog --sentences 6 --seed 1 --kind dags --features spelling -o dags-spelled.parquet
corpus generate saleslog --sentences 3 --seed 2 --kind dags --features spelling -o dags-spelled-new.parquet
corpus generate saleslog --sentences 12 --seed 1 --kind parses -o parses.parquet
corpus generate saleslog --sentences 6 --seed 2 --kind parses -o parses-new.parquet
corpus generate saleslog --sentences 4 --seed 3 --kind parses -o parses-more.parquet
"""


def write_files(folder: Path) -> None:
    """Everything written by hand, and the corpora of letters, into `folder`."""
    (folder / "words.conll").write_text(CONLL)
    (folder / "template").write_text(TEMPLATE)
    (folder / "words.conllu").write_text(CONLLU)
    (folder / "parses.trees").write_text(TREES)
    (folder / "treebank.trees").write_text("\n".join(_sentences(24, 1)))
    (folder / "treebank-new.trees").write_text("\n".join(["(TOP (X (Y q) (Z r)))", *_sentences(8, 2)]))
    (folder / "label-kernel.json").write_text(json.dumps(LABEL_KERNEL))
    (folder / "substitution.json").write_text(json.dumps({"symbols": list(SYMBOLS), "matrix": SUBSTITUTION}))
    for name, rows in JSON_LINES.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, make in LETTERS.items():
        make(16, 1).save(folder / f"{name}.parquet")
        make(6, 2).save(folder / f"{name}-new.parquet")
        make(4, 3).save(folder / f"{name}-more.parquet")


def generate() -> None:
    """The corpora of the built-in generator, into the current folder."""
    for line in GENERATED.strip().splitlines():
        succeed(line)


@cache
def corpus(name: str) -> Corpus:
    """A corpus of the current folder, by its name."""
    return Corpus.load(f"{name}.parquet")


# ---- corpora of letters: small, with three labels that hang on a letter and its neighbour


def _words(n: int, seed: int) -> list[list[str]]:
    draw = random.Random(seed)
    return [[draw.choice(SYMBOLS) for _ in range(draw.randint(1, 8))] for _ in range(n)]


def _labels(words: list[list[str]]) -> list[list[str]]:
    names = "XYZ"
    return [
        [names[(SYMBOLS.index(letter) + (k > 0 and word[k - 1] == "A")) % 3] for k, letter in enumerate(word)]
        for word in words
    ]


def _priors(words: list[list[str]]) -> list[list[list[float]]]:
    rows = {"A": [0.5, 0.25, 0.25], "B": [0.125, 0.75, 0.125], "C": [0.25, 0.25, 0.5], "D": [0.625, 0.25, 0.125]}
    return [[rows[letter] for letter in word] for word in words]


def letter_sequences(n: int, seed: int) -> Corpus:
    words = _words(n, seed)
    return Corpus.from_sequences(words, _labels(words), prior=_priors(words), labels=["X", "Y", "Z"])


def letter_trees(n: int, seed: int) -> Corpus:
    words = _words(n, seed)
    draw = random.Random(seed + 100)
    children: list[list[list[int]]] = [[[] for _ in word] for word in words]
    for word, below in zip(words, children, strict=True):
        for node in range(1, len(word)):
            below[draw.randrange(node)].append(node)
    return Corpus.from_trees(words, children, _labels(words), prior=_priors(words), labels=["X", "Y", "Z"])


def letter_dags(n: int, seed: int) -> Corpus:
    words = _words(n, seed)
    draw = random.Random(seed + 200)
    edges = [
        [(u, v) for v in range(len(word)) for u in range(v) if v == u + 1 or draw.random() < 0.2] for word in words
    ]
    return Corpus.from_dags(words, edges, _labels(words), prior=_priors(words), labels=["X", "Y", "Z"])


def unlabeled_letters(n: int, seed: int) -> Corpus:
    """Sequences some of whose labels are missing."""
    words = _words(n, seed)
    labels = [
        [None if (i + 2 * k) % 11 == 5 else label for k, label in enumerate(word)]
        for i, word in enumerate(_labels(words))
    ]
    return Corpus.from_sequences(words, labels, labels=["X", "Y", "Z"])


def valued_sequences(n: int, seed: int) -> Corpus:
    """Sequences whose features have real values."""
    words = _words(n, seed)
    tokens = [
        [{letter: 1.0, "place": 0.25 * k, "before " + word[k - 1]: 0.5} for k, letter in enumerate(word)]
        for word in words
    ]
    return Corpus.from_sequences(tokens, _labels(words), labels=["X", "Y", "Z"])


def tagged_sentences(n: int, seed: int) -> Corpus:
    """Tagged sentences in groups of three candidates with a score."""
    words = _words(3 * n, seed)
    pairs = [[(letter, "N" if letter in "AB" else "V") for letter in word] for word in words]
    corpus = Corpus.from_tagged(pairs).with_column("group", [k // 3 for k in range(3 * n)])
    return corpus.with_column("score", [sum(tag == "N" for _, tag in one) / len(one) for one in pairs])


def candidate_parses(n: int, seed: int) -> Corpus:
    """Random parses in groups of three candidates with a score."""
    draw = random.Random(seed)

    def phrase(depth: int) -> list[object]:
        if depth == 0:
            return [draw.choice("PQ"), draw.choice("xyz")]
        return [draw.choice("PQ"), *(phrase(depth - 1) for _ in range(draw.randint(1, 2)))]

    trees = [phrase(3) for _ in range(3 * n)]
    scores = [json.dumps(tree).count('"x"') / 8 for tree in trees]
    corpus = Corpus.from_parses(trees).with_column("group", [f"s{k // 3}" for k in range(3 * n)])
    return corpus.with_column("score", scores)


LETTERS: dict[str, Callable[[int, int], Corpus]] = {
    "letters": letter_sequences,
    "letter-trees": letter_trees,
    "letter-dags": letter_dags,
    "letters-unlabeled": unlabeled_letters,
    "letters-valued": valued_sequences,
    "tagged": tagged_sentences,
    "candidates": candidate_parses,
}


def _sentences(n: int, seed: int) -> list[str]:
    """Trees whose attachment hangs on the verb, as a treebank for candidates."""
    draw = random.Random(seed)
    trees = []
    for _ in range(n):
        verb, first, second = draw.choice(["saw", "met", "heard"]), draw.choice("abcd"), draw.choice("abcd")
        phrase, noun = f"(PP (P with) (NP (D a) (N {second})))", f"(NP (D the) (N {first}))"
        objects = f"(NP {noun} {phrase})" if verb == "met" else f"{noun} {phrase}"
        trees.append(f"(TOP (S (NP (PRP I)) (VP (V {verb}) {objects})))")
    return trees
