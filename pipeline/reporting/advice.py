"""What to try next, from the numbers of a run: every rule looks at one of them and says what it saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gramline.learners.metrics import Score
from gramline.pipeline.crossval.fold_settings import DUPLICATES
from gramline.pipeline.reporting.content import Advice

CERTAIN = 0.05  # a p-value below it is not taken for chance
SMALLEST_P = 0.001
HIGH_ERROR = 0.10  # in the last round of training: the model cannot tell the labels apart
FALLING = 0.9  # of the error one round before: training had not come to its end
LEAST_ERROR = 0.02  # in training: what is below it is as good as none
SMALL_SHARE = 0.01  # of the Gram matrix: neighbours that make less have no say
MUCH_WORSE = 3  # times the error in training
RARE = 20  # positions with a label in the whole corpus
WEAK = 0.5  # recall
SHOWN = 6  # labels in a sentence


@dataclass(frozen=True)
class Rival:
    """A baseline beside the best setting; positive differences mean that the best setting is better."""

    name: str
    difference: float
    p: float | None  # None: there is one fold only


@dataclass(frozen=True)
class Facts:
    """The numbers that advice is computed from; what is not known is None or empty."""

    metric: str
    learner: str  # of the best setting
    strongest: Rival | None = None
    training: Sequence[float] = ()  # share of errors per round, on the training part
    training_unit: str = "positions"
    held_out_error: float | None = None  # the same share, on what was held out
    context_share: float | None = None  # of the best setting's kernel
    kernel: str = ""  # its name
    observation: str = ""  # that of its observation kernel
    by_label: Mapping[str, Score] = field(default_factory=dict)
    n_structures: int = 0
    n_duplicates: int | None = None


def advice(facts: Facts) -> list[Advice]:
    """What stands out, the most important first; never empty."""
    rules = (_rivals, _underfit, _context, _overfit, _rare_labels, _duplicates)
    seen = [one for rule in rules for one in rule(facts)]
    return seen or [
        Advice(
            "Nothing stands out",
            "Training came to its end, neighbours count, no label is rare and no structure is in two folds. What "
            "remains is more data, or features that say more about the words that are wrong.",
        )
    ]


def shown_p(p: float) -> str:
    """A p-value behind the letter: three decimals, or that it is smaller than they show."""
    return f"=\u00a0{p:.3f}" if p >= SMALLEST_P else f"<\u00a0{SMALLEST_P}"


def verdict(rival: Rival | None, metric: str) -> str:
    """The best setting beside the strongest baseline, in a sentence."""
    if rival is None:
        return "There is no baseline to compare with."
    size = f"{abs(rival.difference):.4f}"
    chance = "one test only, so it may be chance" if rival.p is None else f"p\u00a0{shown_p(rival.p)}"
    if rival.difference == 0:
        return f"As good as the strongest baseline, the {rival.name}."
    is_sure = rival.p is None or rival.p < CERTAIN
    how = "Behind" if rival.difference < 0 else "Better than" if is_sure else "Ahead of"
    doubt = "" if is_sure else ", which may be chance"
    return f"{how} the strongest baseline, the {rival.name}, by {size} in {metric}{doubt} ({chance})."


def _rivals(facts: Facts) -> Iterator[Advice]:
    rival = facts.strongest
    if rival is None or (rival.difference > 0 and (rival.p is None or rival.p < CERTAIN)):
        return
    if rival.name.startswith("majority"):
        yield Advice(
            "Nothing was learned",
            "Always giving the most frequent label is as good. Take features of spelling with a window, an observation "
            "kernel that compares features, or more data.",
        )
        return
    is_behind = rival.difference < 0 and rival.p is not None and rival.p < CERTAIN
    yield Advice(
        f"{'Behind' if is_behind else 'Close to'} the {rival.name}",
        f"{verdict(rival, facts.metric)} Where labels follow from features of the words nearby, that model is "
        f"simpler and faster. A kernel pays where the structure matters: try {_either(_untried(facts))}.",
    )


def _either(things: Iterable[str]) -> str:
    *first, last = things
    return f"{', '.join(first)} or {last}" if first else last


def _untried(facts: Facts) -> Iterator[str]:
    """What the best setting's kernel is not yet."""
    if facts.kernel not in ("tree-labeling", "dag-labeling"):
        yield "trees"
    yield "the kernel sequence-labeling, which sees neighbours" if facts.kernel == "position" else "a larger reach"
    if facts.observation not in ("polynomial", "gaussian"):
        yield "the observation kernel polynomial of degree 2"


def _underfit(facts: Facts) -> Iterator[Advice]:
    if not facts.training:
        return
    last = facts.training[-1]
    before = facts.training[-2] if len(facts.training) > 1 else None
    if last > LEAST_ERROR and (before is None or last < FALLING * before):
        seen = "there was one round only" if before is None else f"the round before it was {before:.1%}"
        yield Advice(
            "Training stopped early",
            f"In the last round {last:.1%} of the training {facts.training_unit} were wrong, and {seen}. Give "
            f"{facts.learner} more rounds: `rounds = {2 * len(facts.training)}` or more.",
        )
    elif last > HIGH_ERROR:
        yield Advice(
            "Underfit",
            f"{last:.1%} of the training {facts.training_unit} are wrong even in the last round: the kernel cannot "
            "tell the labels apart. Add features (spelling, a window), or take polynomial of degree 2 for linear.",
        )


def _overfit(facts: Facts) -> Iterator[Advice]:
    if not facts.training or facts.held_out_error is None:
        return
    last = facts.training[-1]
    if last <= LEAST_ERROR and facts.held_out_error > MUCH_WORSE * max(last, LEAST_ERROR / 2):
        yield Advice(
            "The training part is learned by heart",
            f"{last:.1%} of its {facts.training_unit} are wrong in the last round, but {facts.held_out_error:.1%} of "
            f"the {facts.training_unit} that were held out. More rounds do not help; more labeled data, or fewer and "
            "more general features, may.",
        )


def _context(facts: Facts) -> Iterator[Advice]:
    if facts.context_share is not None and facts.context_share < SMALL_SHARE:
        yield Advice(
            "Context is not used",
            f"Neighbours make {facts.context_share:.2%} of the Gram matrix, so positions are compared almost by "
            'themselves. Set `reach = "auto"`, or `reach = "grid"` to try several.',
        )


def _rare_labels(facts: Facts) -> Iterator[Advice]:
    rare = {label: score for label, score in facts.by_label.items() if 0 < score.gold < RARE and score.recall < WEAK}
    if rare:
        listed = [f"{label} ({score.gold}, recall {score.recall:.2f})" for label, score in rare.items()]
        more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
        yield Advice(
            "Rare labels",
            f"Fewer than {RARE} positions carry each of these, and most of them are missed: "
            f"{', '.join(listed[:SHOWN])}{more}. Label more of them, or join them with a label that is near.",
        )


def _duplicates(facts: Facts) -> Iterator[Advice]:
    if facts.n_duplicates:
        yield Advice(
            "Equal structures in different folds",
            f"{facts.n_duplicates:,} of {facts.n_structures:,} structures are held out while an equal one trains: the "
            f"scores are too good. `--group {DUPLICATES}` keeps equal ones together.",
        )
