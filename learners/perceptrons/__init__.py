"""Perceptrons over a Gram matrix: of positions, of label chains, of ranked candidates."""
