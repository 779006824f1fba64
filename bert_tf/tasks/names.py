"""Names of tasks and of formats of their files, which --help lists; the tasks themselves are imported when they are made."""

from bert_tf import extension
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION

GLUE = ("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI", "AX")
XNLI = "XNLI"
LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")  # of XNLI
KINDS = (CLASSIFICATION, REGRESSION, MULTI_LABEL)  # of sentences and pairs

TSV, CSV, JSONL = "tsv", "csv", "jsonl"
FORMATS = (TSV, CSV, JSONL)  # of outputs
QUOTED_TSV, PARQUET = "quoted_tsv", "parquet"
INPUT_FORMATS = (*FORMATS, QUOTED_TSV, PARQUET)


def no_labels() -> str:
    """Why a pre-training model cannot be asked for labels, and what can be asked of it."""
    predicts = extension.advice("fill-mask", "; python -m bert_tf fill-mask predicts them")
    measures = extension.advice("pretrain", ", python -m bert_tf pretrain --do_eval measures them on held-out text")
    return f"masked words were learned, no labels{predicts}{measures}"
