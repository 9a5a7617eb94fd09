"""The Gaussian-process labeler with a pseudo-likelihood of label chains."""
