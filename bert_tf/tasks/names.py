"""Names of the tasks of families other than sentences; GLUE's are in `tasks.glue`."""

SQUAD, SQUAD2 = "SQuAD", "SQuAD2"
CONLL2003 = "CoNLL2003"
SWAG = "SWAG"
STS_B_VECTORS = "STS-B-vectors"
PRETRAINING = "Pretraining"
