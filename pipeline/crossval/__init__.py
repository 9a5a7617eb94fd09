"""Folds, jobs and runs: many settings on the same matrix, as docs/one-pass-cross-validation.md explains."""
