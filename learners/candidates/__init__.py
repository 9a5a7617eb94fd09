"""What all rankers share: groups of candidates, how hypotheses vote, and the weight of log probabilities."""
