"""Settings of pre-training and of its data; names and defaults are the published ones (google-research/bert)."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, ClassVar

from bert_tf.errors import FlagError
from bert_tf.settings import MOST_EXAMPLES, setting, setting_names

if TYPE_CHECKING:
    from bert_tf.extensions.pretrain.corpus.documents import Corpus

FORMS = SENTENCES, PARAGRAPHS, BOOK, JSONL = "sentences", "paragraphs", "book", "jsonl"
LONGEST_ROW = 1 << 14  # tokens; blocks of padded rows are made in memory
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_]\w+)*")


@dataclasses.dataclass(frozen=True)
class CorpusSettings:
    """Text files and the format of their documents."""

    TITLE: ClassVar[str] = "Format of the text"

    input_file: str | None = setting(None, "text files (.gz too), comma-separated, patterns, or - for a pipe")
    input_format: str | None = setting(
        None,
        "sentences: one per line, blank line between documents; paragraphs: one per line; book: each file is one"
        " document of raw text; jsonl: one object per line; default: jsonl or sentences, by suffix",
        choices=FORMS,
    )
    text_key: str = setting("text", "key of the text, or of a list of sentences, in JSON lines")
    language: str = setting("en", "language of raw text (ISO 639), for splitting it into sentences")

    def corpus(self, files: tuple[str, ...]) -> Corpus:
        """Raises FlagError if the language is not a code: an unknown one would silently be split as English."""
        if not _LANGUAGE.fullmatch(self.language):
            raise FlagError(f"--language={self.language}: expected a code of ISO 639, as en, de or zh")
        from bert_tf.extensions.pretrain.corpus.documents import Corpus

        return Corpus(files, self.input_format, self.text_key, self.language)


@dataclasses.dataclass(frozen=True)
class MaskedRowSettings:
    """What determines masked rows; `nsp`, which decides about the head too, is recorded with it."""

    short_seq_prob: float = setting(0.1, "share of rows shortened to a random length", lowest=0, highest=1, determines=True)
    nsp: bool = setting(True, "sentence pairs, half of them consecutive; without it rows are full sentences of one document")
    masked_lm_prob: float = setting(0.15, "share of a row's tokens to mask", lowest=0, highest=1, determines=True)
    max_predictions_per_seq: int = setting(
        20, "maximum masks per row: about max_seq_length * masked_lm_prob", lowest=1, highest=LONGEST_ROW, determines=True
    )
    do_whole_word_mask: bool = setting(False, "mask whole words", determines=True)
    random_seed: int = setting(12345, "random seed", determines=True)


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
        None, "folder of the tokenized text, to share between runs; default: OUTPUT_DIR/corpus", path=True, written=True
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
