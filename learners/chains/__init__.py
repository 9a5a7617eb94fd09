"""Label chains: Viterbi, ties, and the moments of all label paths."""
