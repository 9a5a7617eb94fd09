"""Solves and factors: no labels, no kernels."""
