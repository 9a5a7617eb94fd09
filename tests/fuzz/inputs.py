"""Well-formed inputs of every reader, from small grammars; `mutations` makes bad ones of them."""

from __future__ import annotations

import json
import random

WORDS = ["the", "dog", "flies", "like", "x-1", "Ärger", "日本", "3.14", "-LRB-", "a|b", "=", "%"]
TAGS = ["O", "B", "I", "NN", "VB"]


def _words(draw: random.Random, most: int = 6) -> list[str]:
    return [draw.choice(WORDS) for _ in range(draw.randint(1, most))]


def conll(draw: random.Random) -> bytes:
    separator = draw.choice(" \t")
    sentences = []
    for _ in range(draw.randint(1, 4)):
        rows = [separator.join((word, draw.choice(TAGS), draw.choice(TAGS))) for word in _words(draw)]
        sentences.append("\n".join(rows))
    return ("\n\n".join(sentences) + "\n").encode()


def conllu(draw: random.Random) -> bytes:
    sentences = []
    for number in range(draw.randint(1, 3)):
        words = _words(draw)
        lines = [f"# sent_id = s{number}"]
        for place, word in enumerate(words, start=1):
            head = draw.randrange(place)
            fields = (str(place), word, "_", "NOUN", "_", "Number=Sing", str(head), "dep", "_", "NER=O")
            lines.append("\t".join(fields))
            if draw.random() < 0.1:
                lines.insert(-1, f"{place}-{place + 1}" + "\t_" * 9)
        sentences.append("\n".join(lines))
    return ("\n\n".join(sentences) + "\n\n").encode()


def _tree(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.3:
        return f"({draw.choice(('NN', 'VB', 'NP-SBJ-1', '-NONE-'))} {draw.choice(('dog', 'runs', '*T*'))})"
    below = " ".join(_tree(draw, depth - 1) for _ in range(draw.randint(1, 3)))
    return f"({draw.choice(('S', 'NP', 'VP=2'))} {below})"


def brackets(draw: random.Random) -> bytes:
    trees = [_tree(draw, 3) for _ in range(draw.randint(1, 4))]
    return "\n".join(f"( {tree})" if draw.random() < 0.2 else tree for tree in trees).encode()


def jsonl(draw: random.Random) -> bytes:
    kind = draw.choice(("sequences", "trees", "heads", "dags", "parses", "tagged", "features", "prior"))
    lines = []
    for number in range(draw.randint(1, 4)):
        words = _words(draw)
        record: dict[str, object] = {"tokens": words, "labels": [draw.choice(TAGS) for _ in words], "id": f"s{number}"}
        if kind == "trees":
            record["children"] = [[place + 1] if place + 1 < len(words) else [] for place in range(len(words))]
        elif kind == "heads":
            record["heads"] = [0, *range(1, len(words))]
        elif kind == "dags":
            record["edges"] = [[0, place] for place in range(1, len(words))]
        elif kind == "tagged":
            record = {"tokens": words, "tags": [draw.choice(TAGS) for _ in words]}
        elif kind == "parses":
            record = {"tree": _tree(draw, 2), "group": number}
        elif kind == "features":
            record["tokens"] = [{"w": word, "n": 1.5} if draw.random() < 0.5 else [word, "f"] for word in words]
            record["words"] = words
        elif kind == "prior":
            record["labels"] = [TAGS[0]] + [TAGS[1]] * (len(words) - 1) if len(words) > 1 else [TAGS[0]]
            width = len(set(record["labels"]))  # type: ignore[call-overload]
            record["prior"] = [[1.0 / width] * width for _ in words]
        lines.append(json.dumps(record, ensure_ascii=draw.random() < 0.5))
    return "\n".join(lines).encode()


def fasta(draw: random.Random) -> bytes:
    lines = []
    for number in range(draw.randint(1, 4)):
        letters = "".join(draw.choice("ACDEFGHIKLMNPQRSTVWYXBZUacd-") for _ in range(draw.randint(1, 12)))
        lines += [f">p{number} a protein", letters, "".join(draw.choice("HEC") for _ in letters)]
    return ("\n".join(lines) + "\n").encode()


def template(draw: random.Random) -> bytes:
    lines = ["# features", "B"]
    for number in range(draw.randint(1, 4)):
        row, column = draw.randint(-2, 2), draw.randint(0, 1)
        lines.append(f"U{number:02}:%x[{row},{column}]" + draw.choice(("", f"/%x[{row - 1},0]")))
    return "\n".join(lines).encode()


def fold_file(draw: random.Random) -> bytes:
    numbers = list(range(6))
    draw.shuffle(numbers)
    cut = draw.randint(1, 5)
    return json.dumps([numbers[:cut], numbers[cut:]]).encode()


def job(draw: random.Random) -> bytes:
    """Names a corpus that lies beside the job file."""
    return f"""
[corpus]
path = "tiny.parquet"

[kernel]
name = "sequence-labeling"
c = [{draw.choice(("0.5, 0.7", "0.8"))}]
gap = {draw.choice(("0.0", "0.25"))}
observation = "{draw.choice(("identity", "polynomial:degree=2", "gaussian:gamma=0.5"))}"

[[learner]]
name = "{draw.choice(("labeling-perceptron", "gaussian-process", "zscore", "kernel-zscore"))}"

[[learner]]
name = "labeling-perceptron"
rounds = {draw.randint(1, 9)}
average = {draw.choice(("true", "false", "[true, false]"))}

[folds]
count = {draw.randint(2, 3)}
seed = {draw.randint(0, 9)}

[cluster]
workers = 2
memory_limit = "{draw.choice(("2GiB", "500 MB"))}"

[output]
path = "x.run"
metric = "accuracy"
""".encode()
