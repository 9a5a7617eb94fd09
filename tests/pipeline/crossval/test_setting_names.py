"""Settings are named by what differs."""

from __future__ import annotations

from gramline.kernels import SequenceLabeling, Substitution, Sum
from gramline.pipeline.crossval.setting_names import describe_with_files, list_digest, setting_names


def test_settings_are_named_by_what_differs() -> None:
    kernels = [SequenceLabeling(c=c).to_dict() for c in (0.5, 1.0)]
    settings = [
        {"kernel": kernel, "learner": "labeling-perceptron", "params": {"rounds": rounds, "average": True}}
        for kernel in kernels
        for rounds in (1, 5)
    ]
    settings.append({"kernel": None, "learner": "zscore", "params": {"ridge": 0.1}})
    assert setting_names(settings) == [
        "labeling-perceptron(c=0.5, rounds=1)",
        "labeling-perceptron(c=0.5, rounds=5)",
        "labeling-perceptron(c=1, rounds=1)",
        "labeling-perceptron(c=1, rounds=5)",
        "zscore",
    ]


def test_a_learner_with_and_without_a_kernel_is_not_named_by_all_of_the_kernel() -> None:
    kernel, learner = SequenceLabeling().to_dict(), "hidden-markov-perceptron"
    settings = [
        {"kernel": kernel, "learner": learner, "params": {"dual": True}},
        {"kernel": None, "learner": learner, "params": {"dual": False}},
    ]
    assert setting_names(settings) == [f"{learner}(dual=True)", f"{learner}(dual=False)"]


def test_lists_of_files_have_the_name_of_their_file() -> None:
    symbols, near, far = ["a", "b"], [[2, 1], [1, 2]], [[9, 1], [1, 9]]
    kernels = [SequenceLabeling(observation=Substitution(symbols, matrix)).to_dict() for matrix in (near, far)]
    settings = [{"kernel": kernel, "learner": "zscore", "params": {}} for kernel in kernels]
    files = {list_digest(near): "x/near.json", list_digest(far): "x/far.json"}
    assert setting_names(settings, {list_digest(far): "x/far.json"})[1].endswith("file=far.json))")
    assert [name[-17:] for name in setting_names(settings)] == ["2 x 2 matrix)) #1", "2 x 2 matrix)) #2"]
    files[list_digest(symbols)] = "x/near.json"
    assert setting_names(settings, files)[0] == "zscore(observation=substitution(file=near.json))"
    clash = {list_digest(near): "x/m.json", list_digest(far): "y/m.json"}
    assert [name.partition("file=")[2] for name in setting_names(settings, clash)] == ["x/m.json))", "y/m.json))"]


def test_label_kernels_and_parts_of_parts_are_named_too() -> None:
    matrix = ((1.0, 0.5), (0.5, 1.0))
    part = Substitution(("a", "b"), matrix)
    kernel = SequenceLabeling(observation=Sum(part, part), label_kernel=((2.0, 0.0), (0.0, 2.0)))
    files = {list_digest([[2, 0], [0, 2]]): "labels.json", list_digest(matrix): "m.json"}
    described = describe_with_files(kernel.to_dict(), files)
    assert "label_kernel=labels.json" in described
    assert described.count("file=m.json") == 2
