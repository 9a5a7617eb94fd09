"""The Hidden Markov perceptron with dictionaries and every label path written down; averages by adding up."""

from collections import defaultdict
from itertools import pairwise, product


def decode(sentence, emission, transition, n_labels):
    def score(path):
        seen = [(label, item) for k, label in enumerate(path) for item in sentence[k].items()]
        total = sum(emission[label, name] * value for label, (name, value) in seen)
        return total + sum(transition[pair] for pair in pairwise(path))

    paths = sorted(product(range(n_labels), repeat=len(sentence)), key=lambda path: path[::-1])
    return max(paths, key=score)


def train(sentences, labels, n_labels, rounds):
    """(last weights, mean weights after each visit, mistakes per round); no early stop."""
    emission, transition = defaultdict(float), defaultdict(float)
    sums = defaultdict(float), defaultdict(float)
    mistakes, visits = [], 0
    for _ in range(rounds):
        mistakes.append(0)
        for sentence, truth in zip(sentences, labels, strict=True):
            guess = decode(sentence, emission, transition, n_labels)
            if list(guess) != list(truth):
                mistakes[-1] += 1
                for path, sign in ((truth, 1), (guess, -1)):
                    for k, label in enumerate(path):
                        for name, value in sentence[k].items():
                            emission[label, name] += sign * value
                    for pair in pairwise(path):
                        transition[tuple(pair)] += sign
            visits += 1
            for weights, total in ((emission, sums[0]), (transition, sums[1])):
                for key, value in weights.items():
                    total[key] += value
    means = [defaultdict(float, {key: value / visits for key, value in total.items()}) for total in sums]
    return (emission, transition), tuple(means), mistakes
