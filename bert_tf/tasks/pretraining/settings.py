"""Settings of pre-training; names and defaults are the published ones (google-research/bert run_pretraining.py)."""

from __future__ import annotations

import dataclasses

from bert_tf.corpus.settings import FORM, LONGEST_ROW, CorpusSettings, MaskedRowSettings
from bert_tf.settings import MOST_EXAMPLES, setting


@dataclasses.dataclass(frozen=True)
class PretrainingSettings(MaskedRowSettings, CorpusSettings):
    """Text, masking and the second phase."""

    # Declared anew where they mean something else than in `pretraining-data`.
    input_file: str | None = setting(
        None, "text, or TFRecord shards of `pretraining-data`: files and patterns with commas; else the bundled sample"
    )
    nsp: bool = setting(True, "learn whether one text follows another; else rows are full sentences of one document")
    random_seed: int = setting(12345, "decides rows and masks; --seed decides all else", lowest=0)

    held_out_file: str | None = setting(None, "as --input_file, to evaluate on; nothing of it is trained on")
    held_out_documents: int | None = setting(
        None, "documents of --input_file that are evaluated on instead; else a twentieth of them, 200 at most", lowest=0
    )
    corpus_dir: str | None = setting(None, "folder of the tokenized text, for several runs; else OUTPUT_DIR/corpus")
    sampled_softmax: int = setting(
        0, "train the head with so many words drawn for each batch, not the whole vocabulary; 0 for all", lowest=0
    )
    max_eval_steps: int = setting(100, "batches of --eval_batch_size held-out rows to evaluate, spread over all", lowest=1)
    phase2_num_train_steps: int = setting(0, "steps of a second phase, in the same schedule; 0 for none", lowest=0)
    phase2_input_file: str | None = setting(None, "what it reads; else --input_file")
    phase2_max_seq_length: int = setting(512, "longest row of the second phase in word pieces")
    phase2_train_batch_size: int | None = setting(
        None, "rows of one step of the second phase; else as in the first", lowest=1, highest=MOST_EXAMPLES
    )
    phase2_max_predictions_per_seq: int | None = setting(
        None,
        "most masked words of a row of the second phase; else as many more as rows are longer",
        lowest=1,
        highest=LONGEST_ROW,
    )


LISTS = ("input_file", "held_out_file", "phase2_input_file")  # of files, with commas
PATHS = (*LISTS, "corpus_dir")
# What decides on rows and masks, and so on what is learned; what the form of files decides on the text itself says.
OF_ROWS = tuple(
    field.name
    for field in dataclasses.fields(PretrainingSettings)
    if field.name not in (*PATHS, *FORM, "max_eval_steps", "nsp", "sampled_softmax")
)
