"""Settings of text and rows that commands share; names and defaults are the published ones."""

from __future__ import annotations

import dataclasses
import re

from bert_tf.corpus import documents
from bert_tf.corpus.documents import Corpus
from bert_tf.errors import FlagError
from bert_tf.settings import setting

LONGEST_ROW = 1 << 14  # tokens; blocks of padded rows are made in memory
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_]\w+)*")
FORM = ("input_format", "text_key", "language")


@dataclasses.dataclass(frozen=True)
class CorpusSettings:
    """Text files and the format of their documents."""

    input_file: str | None = setting(None, "text, .gz too; names with commas, patterns, or - for a pipe")
    input_format: str | None = setting(
        None,
        "sentences: one a line, a blank line between documents; paragraphs: the same with paragraphs; book: a file is one"
        " document of raw text; jsonl: an object a line; else jsonl or sentences, as the name says",
        choices=tuple(documents.FORMS),
    )
    text_key: str = setting("text", "of an object of JSON lines, what holds the text, or a list of sentences")
    language: str = setting("en", "of raw text, by which it is cut into sentences: a code of ISO 639")

    def corpus(self, files: tuple[str, ...]) -> Corpus:
        """Raises FlagError if the language is not a code: an unknown one would silently be split as English."""
        if not _LANGUAGE.fullmatch(self.language):
            raise FlagError(f"--language={self.language}: expected a code of ISO 639, as en, de or zh")
        return Corpus(files, self.input_format, self.text_key, self.language)


@dataclasses.dataclass(frozen=True)
class MaskedRowSettings:
    short_seq_prob: float = setting(0.1, "share of the rows that are made shorter, of random length", lowest=0, highest=1)
    nsp: bool = setting(True, "pairs, of which half follow each other; without it rows are full sentences of one document")
    masked_lm_prob: float = setting(0.15, "share of the tokens of a row that are masked", lowest=0, highest=1)
    max_predictions_per_seq: int = setting(
        20, "most masks of a row: about max_seq_length * masked_lm_prob", lowest=1, highest=LONGEST_ROW
    )
    do_whole_word_mask: bool = setting(False, "mask all pieces of a word, or none")
    random_seed: int = setting(12345, "of all that is drawn")
