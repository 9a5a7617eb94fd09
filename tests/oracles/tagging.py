"""The tagging kernel by writing out every run of tags, each tag with or without its word."""

from itertools import combinations, product


def features_of(sentence, gap=None):
    """{feature: summed weight of its appearances}; without a gap only consecutive positions are chosen."""
    weights = {}
    for size in range(1, len(sentence) + 1):
        for chosen in combinations(range(len(sentence)), size):
            skipped = chosen[-1] - chosen[0] + 1 - size
            weight = (1.0 if skipped == 0 else 0.0) if gap is None else float(gap) ** skipped
            for with_word in product([False, True], repeat=size):
                feature = tuple(
                    (sentence[p][1], sentence[p][0] if shown else None)
                    for p, shown in zip(chosen, with_word, strict=True)
                )
                weights[feature] = weights.get(feature, 0.0) + weight
    return weights


def tagging_kernel(sentence, other, decay, gap=None):
    mine, yours = features_of(sentence, gap), features_of(other, gap)
    return sum(decay ** len(feature) * weight * yours.get(feature, 0.0) for feature, weight in mine.items())
