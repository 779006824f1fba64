"""Names of the tasks of families other than sentences; GLUE's are in `tasks.glue`."""

SQUAD, SQUAD2 = "SQuAD", "SQuAD2"
CONLL2003 = "CoNLL2003"
SWAG = "SWAG"
STS_B_VECTORS = "STS-B-vectors"
NO_LABELS = (
    "masked words were learned, no labels; python -m bert_tf fill-mask predicts them,"
    " python -m bert_tf pretrain --do_eval measures them on held-out text"
)
