"""The generated corpus: the same sentence every time, in four shapes, with labels that hang on a distant verb."""

from collections import Counter, defaultdict

import pytest

from gramline.pipeline.corpus import generate_saleslog
from gramline.pipeline.corpus.parses import words
from gramline.pipeline.corpus.saleslog import SALESLOG_KINDS, SALESLOG_LABELS, derive
from gramline.pipeline.corpus.saleslog_grammar import STATES, VERB_GROUPS, WINDOW
from gramline.pipeline.errors import CorpusError

SENTENCES = [derive(5, index) for index in range(300)]
STATE_OF = {tuple(group.split()): state for state, groups in VERB_GROUPS.items() for group in groups.split("|")}
# generate_saleslog(50, seed=7, kind="trees").fingerprint: a change of the grammar changes it
GOLDEN = "6bc0b88a55da37e77c9182b60d4ef21ead7ff408c4b1ab54254c579b4e859d19"


def verb_groups(sentence):
    """Positions of the words of each verb group, read off the parse tree."""
    groups, position = [], 0
    stack = [(sentence.parse, None)]
    while stack:
        item, group = stack.pop()
        if isinstance(item, str):
            if group is not None:
                group.append(position)
            position += 1
            continue
        if item[0] == "VG":
            group = []
            groups.append(group)
        stack.extend((child, group) for child in reversed(item[1:]))
    return groups


def test_a_sentence_depends_on_seed_and_index_alone():
    assert derive(5, 17) == SENTENCES[17]
    long, short = generate_saleslog(20, seed=5), generate_saleslog(4, seed=5)
    assert long.select(range(4)).fingerprint == short.fingerprint
    assert generate_saleslog(4, seed=6).fingerprint != short.fingerprint
    assert generate_saleslog(50, seed=7, kind="trees").fingerprint == GOLDEN


def test_four_shapes_of_one_sentence():
    corpora = {kind: generate_saleslog(30, seed=5, kind=kind) for kind in SALESLOG_KINDS}
    assert {kind: corpus.kind for kind, corpus in corpora.items()} == {kind: kind for kind in SALESLOG_KINDS}
    tokens = corpora["sequences"].tokens
    assert corpora["trees"].tokens == corpora["dags"].tokens == tokens
    assert [words(tree) for tree in corpora["parses"].trees] == tokens
    assert corpora["trees"].labels == corpora["dags"].labels == corpora["sequences"].labels
    assert corpora["sequences"].label_names == list(SALESLOG_LABELS)


def test_dependencies_form_one_tree_and_graphs_run_forward():
    for sentence in SENTENCES:
        assert sentence.heads.count(-1) == 1
        reached, frontier = 0, [sentence.heads.index(-1)]
        while frontier:
            reached += len(frontier)
            frontier = [child for node in frontier for child in sentence.children[node]]
        assert reached == len(sentence.words)
        assert all(source < target for source, target in sentence.edges)
        assert {(k, k + 1) for k in range(len(sentence.words) - 1)} < set(sentence.edges)


def test_the_label_is_the_state_of_the_governing_verb():
    seen = Counter()
    for sentence in SENTENCES:
        state_at = {
            position: STATE_OF[tuple(sentence.words[p] for p in group)]
            for group in verb_groups(sentence)
            for position in group
        }
        for position, label in enumerate(sentence.labels):
            if label == "O":
                continue
            governor = sentence.heads[position]
            while governor not in state_at:
                governor = sentence.heads[governor]
            assert label.split(".")[1] == state_at[governor]
            seen[label] += 1
    assert set(seen) == set(SALESLOG_LABELS) - {"O"}


def test_no_window_sees_the_verb():
    for sentence in SENTENCES:
        verbs = [position for group in verb_groups(sentence) for position in group]
        slots = [position for position, label in enumerate(sentence.labels) if label != "O"]
        assert slots
        assert min(abs(verb - slot) for verb in verbs for slot in slots) > WINDOW


def test_words_near_a_slot_do_not_tell_the_state():
    states = defaultdict(Counter)
    for sentence in SENTENCES:
        for position, label in enumerate(sentence.labels):
            if label != "O":
                near = sentence.words[max(0, position - WINDOW) : position + WINDOW + 1]
                for word in set(near):
                    states[word][label.split(".")[1]] += 1
    frequent = [counts for counts in states.values() if counts.total() >= 150]
    assert len(frequent) > 10
    assert all(0.15 < counts[state] / counts.total() < 0.55 for counts in frequent for state in STATES)


def test_sentences_vary():
    texts = {" ".join(sentence.words) for sentence in SENTENCES}
    assert len(texts) == len(SENTENCES)
    assert len({word for sentence in SENTENCES for word in sentence.words}) > 400
    two_states = sum(len({label.split(".")[-1] for label in s.labels} - {"O"}) > 1 for s in SENTENCES)
    assert 30 < two_states < 150
    known = {word for sentence in SENTENCES[:200] for word in sentence.words}
    fresh = [word not in known for sentence in SENTENCES[200:] for word in sentence.words]
    assert 0.01 < sum(fresh) / len(fresh) < 0.1


def test_feature_sets():
    corpus = generate_saleslog(3, kind="trees", features="spelling", window=0)
    assert any(name.startswith("pos[0]=") for name in corpus.packed().vocabulary.features)
    assert corpus.tokens == generate_saleslog(3, kind="trees").tokens


def test_refused():
    with pytest.raises(CorpusError, match="the sales log comes as sequences, trees, dags, parses, not as 'tagged'"):
        generate_saleslog(3, kind="tagged")
    with pytest.raises(CorpusError, match="the sales log needs at least one sentence, got 0"):
        generate_saleslog(0)
