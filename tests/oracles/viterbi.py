"""All label paths of a chain, one by one."""

from itertools import pairwise, product


def path_score(scores, transition, path):
    total = sum(scores[k][label] for k, label in enumerate(path))
    return total + sum(transition[a][b] for a, b in pairwise(path))


def all_paths(length, n_labels):
    return list(product(range(n_labels), repeat=length))


def best_path(scores, transition):
    """The best path; of equally good ones the one with the lowest last label, then the lowest one before it, ..."""
    paths = sorted(all_paths(len(scores), len(transition)), key=lambda path: path[::-1])
    return max(paths, key=lambda path: path_score(scores, transition, path))
