"""Perceptrons over a Gram matrix: of positions, chains, ranked candidates. docs/lazy-training.md: what they read."""
