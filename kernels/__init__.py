"""Kernels between sequences, trees and graphs: packed structures in, a tile of the Gram matrix out."""

from gramline.kernels.dags.labeling import DagLabeling as DagLabeling
from gramline.kernels.observations.features import Gaussian as Gaussian
from gramline.kernels.observations.features import Linear as Linear
from gramline.kernels.observations.features import Polynomial as Polynomial
from gramline.kernels.observations.identity import Identity as Identity
from gramline.kernels.observations.substitution import Substitution as Substitution
from gramline.kernels.priors import EmpiricalPrior as EmpiricalPrior
from gramline.kernels.priors import TabulatedPrior as TabulatedPrior
from gramline.kernels.priors import UniformPrior as UniformPrior
from gramline.kernels.sequences.labeling import SequenceLabeling as SequenceLabeling
from gramline.kernels.structures.forest import WeightedForest as WeightedForest
from gramline.kernels.structures.subset_tree import SubsetTree as SubsetTree
from gramline.kernels.structures.tagging import Tagging as Tagging
from gramline.kernels.trees.labeling import TreeLabeling as TreeLabeling
