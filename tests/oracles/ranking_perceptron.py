"""The ranking perceptron as its definition reads: every F from scratch, in fractions, one comparison at a time."""

from fractions import Fraction


def function(gram, alpha, groups, column):
    """F(x) = sum_ij a_ij (K(x_i0, x) - K(x_ij, x)), x a column of `gram`."""
    return sum(
        Fraction(count) * (Fraction(gram[groups[i][0]][column]) - Fraction(gram[groups[i][j]][column]))
        for (i, j), count in alpha.items()
    )


def train(gram, groups, passes, offsets=None):
    """All hypotheses after the zero one, as (alpha, count), in the order they were created; alpha[i, j] = a_ij.

    `offsets` are added to F.
    """
    alpha, hypotheses = {}, []
    added = [0] * len(gram) if offsets is None else offsets
    for _ in range(passes):
        for i, group in enumerate(groups):
            for j in range(1, len(group)):
                correct, other = (function(gram, alpha, groups, x) + added[x] for x in (group[0], group[j]))
                if correct > other:
                    if hypotheses:
                        hypotheses[-1][1] += 1
                else:
                    alpha = alpha | {(i, j): alpha.get((i, j), 0) + 1}
                    hypotheses.append([alpha, 1])
    return hypotheses


def average(hypotheses):
    total = sum(count for _, count in hypotheses)
    keys = {key for alpha, _ in hypotheses for key in alpha}
    return {key: sum(Fraction(alpha.get(key, 0) * count, total) for alpha, count in hypotheses) for key in keys}


def best(values):
    return values.index(max(values))


def choose(cross, alpha, groups, columns):
    return best([function(cross, alpha, groups, column) for column in columns])


def choose_by_votes(cross, hypotheses, groups, columns):
    votes = [0] * len(columns)
    for alpha, count in hypotheses:
        votes[choose(cross, alpha, groups, columns)] += count
    return best(votes)
