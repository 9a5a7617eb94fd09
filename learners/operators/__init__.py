"""What a learner sees of a Gram matrix: the protocol, and the operators that live in memory."""
