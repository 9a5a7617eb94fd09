"""Candidates for reranking: a grammar read off a treebank and its n best parses of a sentence."""
