"""The real data sets come out with the sizes their description gives."""

import pytest

from gramline.pipeline.corpus import read_brackets, read_conll, read_conllu
from gramline.pipeline.corpus.parses import words


@pytest.mark.parametrize(
    ("path", "sentences", "tokens", "labels"),
    [
        ("crfpp/basenp/test.data", 823, 19_172, 3),
        ("crfpp/segmentation/train.data", 36, 965, 2),
        ("crfpp/japanese_ne/test.data", 500, 12_678, 18),
        ("conll2002_es/esp.train.first300", 300, 8_541, 9),
        ("conll2002_es/esp.testb.gz", 1_517, 51_533, 9),
        ("conll2000/test.txt.gz", 2_012, 47_377, 19),
        ("protein_ss/test.tsv", 17, 3_520, 3),
    ],
)
def test_column_files(data_folder, path, sentences, tokens, labels):
    corpus = read_conll(data_folder / path)
    assert (len(corpus), corpus.n_positions, len(corpus.label_names)) == (sentences, tokens, labels)


@pytest.mark.parametrize("name", ["segmentation", "japanese_ne"])
def test_the_ideographic_space_is_a_token(data_folder, name):
    corpus = read_conll(data_folder / "crfpp" / name / "train.data", features="words")
    assert any("\u3000" in sentence for sentence in corpus.tokens)
    assert "w[0]=\u3000" in corpus.packed().vocabulary.features


def test_dependency_files(data_folder):
    english = read_conllu(data_folder / "ud_english_ewt" / "en_ewt-ud-dev.ner.conllu.gz", label="NER")
    told = english.show()
    assert (told["structures"], told["positions"]) == (2_001, 25_149)
    assert [told["labels"][f"B-{kind}"] for kind in ("PER", "LOC", "ORG")] == [343, 399, 224]
    japanese = read_conllu(data_folder / "ud_japanese_gsd" / "ja_gsd-ud-test.ne.conllu.gz", label="NE")
    assert (len(japanese), japanese.n_positions) == (543, 13_034)
    assert japanese.n_positions - japanese.show()["labels"]["O"] == 1_249


def test_bracketed_files(data_folder):
    train = read_brackets(data_folder / "atis" / "train.trees")
    assert (len(train), sum(len(words(tree)) for tree in train.trees)) == (469, 4_015)
    open_text = read_brackets(data_folder / "gum_const" / "test.trees.gz", strip_functions=True)
    assert (len(open_text), sum(len(words(tree)) for tree in open_text.trees)) == (937, 18_309)


@pytest.mark.slow
def test_empty_elements_of_a_treebank(data_folder):
    plain = read_brackets(data_folder / "wsj_sample" / "wsj_0001-0199.trees.gz", strip_empty=True)
    assert (len(plain), sum(len(words(tree)) for tree in plain.trees)) == (3_914, 94_084)
