"""Folds, jobs and runs: many settings on the same matrix."""
