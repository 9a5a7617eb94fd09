"""Z-score labelers: on explicit features and on a Gram matrix."""
