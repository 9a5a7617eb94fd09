"""Experiments of the papers, repeated: paper and measured numbers side by side."""
