"""Files in, a corpus out: one format per module."""
