"""The one table of experiments."""

from __future__ import annotations

from gramline.kernels.errors import did_you_mean
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Experiment

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "tree-reranking",
            "Voted perceptron with the subset-tree kernel on n-best parses (Collins and Duffy)",
            "gramline.pipeline.experiments.tree_reranking:tree_reranking",
            ("atis/train.trees", "atis/dev.trees"),
        ),
        Experiment(
            "labeling-ner",
            "Sequence kernel against chain learners on Spanish named entities (Kashima and Tsuboi), and beyond",
            "gramline.pipeline.experiments.labeling_ner:labeling_ner",
            ("conll2002_es/esp.train.first300",),
        ),
        Experiment(
            "labeling-usage",
            "Tree against sequence kernel on made-up sales talk and real dependency trees (Kashima and Tsuboi)",
            "gramline.pipeline.experiments.labeling_usage:labeling_usage",
        ),
        Experiment(
            "protein",
            "Secondary structure of proteins: sequence kernels over amino-acid substitutions beside a CRF on windows",
            "gramline.pipeline.experiments.protein:protein",
            ("protein_ss/train.tsv", "protein_ss/test.tsv"),
        ),
        Experiment(
            "gpsl",
            "Gaussian-process labeler on the four CRF++ sets: losses, times, missing labels, calibration",
            "gramline.pipeline.experiments.gpsl:gpsl",
        ),
        Experiment(
            "gpsl-bound",
            "Gaussian-process labeler on the four CRF++ sets, its bound chosen on the training sentences of each fold",
            "gramline.pipeline.experiments.gpsl_choice:gpsl_bound",
        ),
        Experiment(
            "margins",
            "Support vector machines and random fields on the four CRF++ sets, every constant chosen on training data",
            "gramline.pipeline.experiments.margins:margins",
        ),
        Experiment(
            "zscore-artificial",
            "Z-score on random hidden Markov models: training sizes, exact against sampled moments (Ricci et al.)",
            "gramline.pipeline.experiments.zscore_artificial:zscore_artificial",
        ),
        Experiment(
            "zscore-ner",
            "Z-score, perceptron and CRF on Spanish named entities (Ricci et al.)",
            "gramline.pipeline.experiments.zscore_ner:zscore_ner",
            ("conll2002_es/esp.train.first300",),
        ),
        Experiment(
            "defaults",
            "The path without options and every learner's defaults beside a CRF and the best of a grid",
            "gramline.pipeline.experiments.defaults:defaults",
        ),
        Experiment(
            "full-corpora",
            "All of CoNLL-2002 Spanish and CoNLL-2000 chunking without a stored matrix, beside a CRF",
            "gramline.pipeline.experiments.full_corpora:full_corpora",
            ("conll2002_es/esp.train.gz", "conll2000/train.txt.gz"),
        ),
        Experiment(
            "scale",
            "A Gram matrix of 100,000 positions on two workers of 1 GB: time, memory and tile reads at four sizes",
            "gramline.pipeline.experiments.scale:scale",
            by_name_only=True,
        ),
        Experiment(
            "scale-computed",
            "Exact training of up to a million positions on two workers of 1 GB, without a stored matrix; and beyond",
            "gramline.pipeline.experiments.scale_computed:scale_computed",
            by_name_only=True,
        ),
    )
}


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}", advice=did_you_mean(name, EXPERIMENTS))
    return EXPERIMENTS[name]
