from .gaussian_process.labeler import GaussianProcessLabeler as GaussianProcessLabeler
from .metrics import evaluate as evaluate
from .operators.dense import DenseGram as DenseGram
from .perceptrons.hidden_markov import HiddenMarkovPerceptron as HiddenMarkovPerceptron
from .perceptrons.labeling import LabelingPerceptron as LabelingPerceptron
from .perceptrons.ranking import RankingPerceptron as RankingPerceptron
from .zscore.kernel_labeler import KernelZScoreLabeler as KernelZScoreLabeler
from .zscore.labeler import ZScoreLabeler as ZScoreLabeler
