"""Conditional random fields over a Gram matrix: label chains with probabilities."""
