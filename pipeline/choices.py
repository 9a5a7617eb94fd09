"""Names that settings choose among, declared once for stores, job files and the command line; loads nothing."""

from __future__ import annotations

from typing import Literal

Dtype = Literal["float64", "float32"]  # of tiles
Compression = Literal["none", "lz4", "zstd"]  # of tiles
CorpusFormat = Literal["conll", "jsonl", "conllu", "brackets", "fasta"]
LowerCase = Literal["keep", "upper", "unknown"]  # of letters in FASTA files
UnusualLetters = Literal["keep", "drop", "unknown"]  # X, B, Z, U, ... of FASTA files
ConlluKind = Literal["trees", "sequences"]
Metric = Literal["accuracy", "hamming_loss", "exact_match", "precision", "recall", "f1", "span_f1"]
TEMPLATE = "template:"  # and a path: features by a template, in place of the name of a set of features
