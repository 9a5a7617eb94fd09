"""Candidates for reranking: a grammar read off a treebank, its n best parses, and their columns."""
