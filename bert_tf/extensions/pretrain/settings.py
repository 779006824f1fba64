"""Settings of pre-training; names and defaults are the published ones (google-research/bert run_pretraining.py)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.extensions.pretrain.corpus.settings import LONGEST_ROW, CorpusSettings, MaskedRowSettings
from bert_tf.settings import MOST_EXAMPLES, setting, setting_names


@dataclasses.dataclass(frozen=True)
class PretrainingSettings(MaskedRowSettings, CorpusSettings):
    """Text, masking and the second phase."""

    TITLE: ClassVar[str] = "Text to pre-train on (--task_name=Pretraining)"

    # Redeclared, since they differ from `pretraining-data`.
    input_file: str | None = setting(
        None,
        "text, or TFRecord shards from `pretraining-data`: comma-separated files and patterns; default: the bundled sample",
        paths=True,
    )
    nsp: bool = setting(True, "train next-sentence prediction; without it rows are full sentences of one document")
    random_seed: int = setting(
        12345, "random seed for rows and masks; --seed is for everything else", lowest=0, determines=True
    )

    held_out_file: str | None = setting(None, "held-out text to evaluate on, as --input_file", paths=True)
    held_out_documents: int | None = setting(
        None,
        "documents of --input_file to hold out for evaluation; default: a twentieth, at most 200",
        lowest=0,
        determines=True,
    )
    corpus_dir: str | None = setting(
        None, "folder of the tokenized text, to share between runs; default: OUTPUT_DIR/corpus", path=True
    )
    sampled_softmax: int = setting(
        0, "train the head on N words sampled per batch instead of the whole vocabulary; 0: off", lowest=0
    )
    max_eval_steps: int = setting(100, "number of batches of held-out rows to evaluate, spread evenly", lowest=1)
    phase2_num_train_steps: int = setting(0, "steps of a second phase, in the same schedule; 0: off", lowest=0, determines=True)
    phase2_input_file: str | None = setting(None, "input of the second phase; default: --input_file", paths=True)
    phase2_max_seq_length: int = setting(512, "maximum row length of the second phase in word pieces", determines=True)
    phase2_train_batch_size: int | None = setting(
        None, "batch size of the second phase; default: as in the first", lowest=1, highest=MOST_EXAMPLES, determines=True
    )
    phase2_max_predictions_per_seq: int | None = setting(
        None,
        "maximum masks per row of the second phase; default: in proportion to the row length",
        lowest=1,
        highest=LONGEST_ROW,
        determines=True,
    )


LISTS = setting_names(PretrainingSettings, paths=True)
OF_ROWS = setting_names(PretrainingSettings, determines=True)
