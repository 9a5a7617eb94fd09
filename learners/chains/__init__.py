"""Labels of positions and chains: Viterbi, probabilities, ties, and the moments of all label paths."""
