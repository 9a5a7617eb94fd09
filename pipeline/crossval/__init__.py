"""Folds, jobs and runs: many settings on the same matrix. docs/crossval.md says what flows through it."""
