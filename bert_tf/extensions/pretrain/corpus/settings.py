"""Settings of text and rows that commands share; names and defaults are the published ones."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, ClassVar

from bert_tf.errors import FlagError
from bert_tf.settings import setting

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
