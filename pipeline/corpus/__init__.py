"""The corpus: readers, generators, the Arrow table, and its way into packed arrays."""

from gramline.pipeline.corpus.corpus import Corpus as Corpus
from gramline.pipeline.corpus.duplicates import duplicate_groups as duplicate_groups
from gramline.pipeline.corpus.readers.brackets import read_brackets as read_brackets
from gramline.pipeline.corpus.readers.conll import read_conll as read_conll
from gramline.pipeline.corpus.readers.conllu import read_conllu as read_conllu
from gramline.pipeline.corpus.readers.fasta import read_fasta as read_fasta
from gramline.pipeline.corpus.readers.jsonl import read_jsonl as read_jsonl
from gramline.pipeline.corpus.readers.jsonl import write_jsonl as write_jsonl
from gramline.pipeline.corpus.readers.templates import FeatureTemplate as FeatureTemplate
from gramline.pipeline.corpus.recipe import Recipe as Recipe
from gramline.pipeline.corpus.recipe import spelling as spelling
from gramline.pipeline.corpus.saleslog import generate_saleslog as generate_saleslog
