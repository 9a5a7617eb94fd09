"""CRF++ templates against the definition, and the published feature counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import templates as oracle

from gramline.pipeline.corpus import FeatureTemplate, read_conll
from gramline.pipeline.corpus.readers.columns import read_columns
from gramline.pipeline.errors import CorpusError

LINES = [
    "# Unigram", "U00:%x[-2,0]", "U01:%x[0,0]", "U02:%x[2,1]", "U05:%x[-1,0]/%x[0,0]", "U06:%x[-2,1]/%x[0,1]/%x[1,0]!",
    "U07", "", "B",
]  # fmt: skip

symbols = st.text(st.sampled_from("ab/_B-+1\u3000"), min_size=1, max_size=3)
sentences = st.lists(st.lists(st.tuples(symbols, symbols), min_size=1, max_size=5), min_size=1, max_size=4)


def feature_names(corpus):
    return [[set(names) for names in structure] for structure in corpus.table.column("features").to_pylist()]


@given(sentences, st.integers(1, 3))
@settings(max_examples=60)
def test_expansion_by_definition(tmp_path_factory, rows, minimum):
    path = tmp_path_factory.mktemp("columns") / "t"
    path.write_text("\n\n".join("\n".join(f"{w}\t{p}" for w, p in sentence) for sentence in rows), encoding="utf-8")
    template = FeatureTemplate.parse(LINES)
    assert template.bigram
    corpus = read_conll(path, label_column=None, template=template, minimum_count=minimum)
    kept = oracle.kept(LINES, rows, minimum)
    assert feature_names(corpus) == [[names & kept for names in s] for s in oracle.features(LINES, rows)]
    chosen = {name for name in kept if "a" in name}
    assert feature_names(read_conll(path, label_column=None, template=template, keep=chosen)) == [
        [names & chosen for names in s] for s in oracle.features(LINES, rows)
    ]


def test_a_template_file(write):
    template = write("template", "U0:%x[0,0]\n")
    data = write("data", "a X\nb Y\n\na X\n")
    assert read_conll(data, template=template).packed().vocabulary.features == ("U0:a", "U0:b")
    assert read_conll(data, template=template, minimum_count=2).packed().vocabulary.features == ("U0:a",)
    assert not FeatureTemplate.read(template).bigram


@pytest.mark.parametrize(
    ("lines", "place", "problem"),
    [
        (["X00:%x[0,0]"], (1, None, None), "a template line begins with U, B or #, got 'X00"),
        (["# c", "U00:%x[0]"], (2, None, None), "cannot read the macro in 'U00:%x[0]'"),
        (["B"], (None, None, None), "the template has no U line"),
    ],
)
def test_refused_templates(refused, lines, place, problem):
    refused(lambda path: FeatureTemplate.parse(lines, str(path)), "template", place, problem)


def test_a_column_that_is_not_there(write):
    with pytest.raises(CorpusError, match=r"the template reads %x\[0,1\], but .*data has 1 columns besides the label"):
        read_conll(write("data", "a X\n"), template=FeatureTemplate.parse(["U0:%x[0,1]"]))


@pytest.mark.parametrize(
    ("name", "kept", "labels", "total"),
    [
        ("basenp", 2_143, 3, 6_438),
        ("chunking", 2_112, 14, 29_764),
        ("segmentation", 691, 2, 1_386),
        ("japanese_ne", 6_030, 17, 102_799),
    ],
)
def test_published_feature_counts(data_folder, name, kept, labels, total):
    folder = data_folder / "crfpp" / name
    template = FeatureTemplate.read(folder / "template")
    train = read_conll(folder / "train.data", template=template, minimum_count=3)
    assert template.bigram
    assert len(train.label_names) == labels
    vocabulary = train.packed().vocabulary.features
    assert len(vocabulary) == kept
    assert len(vocabulary) * labels + labels**2 == total
    lines = (folder / "template").read_text(encoding="utf-8").splitlines()
    table = read_columns(folder / "train.data")
    columns = [table.sentences(k) for k in range(len(table.columns))]
    rows = [list(zip(*sentence, strict=True)) for sentence in zip(*columns, strict=True)]
    assert set(vocabulary) == oracle.kept(lines, rows, 3)
    test = read_conll(folder / "test.data", template=template, keep=vocabulary)
    assert set(test.packed().vocabulary.features) <= set(vocabulary)
