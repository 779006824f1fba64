"""The configuration of data to pre-train on, made of settings by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.corpus import documents
from bert_tf.corpus.documents import Corpus
from bert_tf.corpus.masking import Masking
from bert_tf.corpus.rows import RowSettings
from bert_tf.errors import FlagError
from bert_tf.settings import named, setting, settings_of
from bert_tf.tokenization.vocabulary import Vocabulary

SHORTEST = 5  # [CLS], [SEP], [SEP] and a piece of either sentence


@dataclasses.dataclass(frozen=True)
class TextSettings:
    """What text there is, and how documents are written in it."""

    input_file: str | None = setting(None, "text, .gz too; names with commas, patterns, or - for a pipe")
    input_format: str | None = setting(
        None,
        "sentences: one a line, a blank line between documents; paragraphs: the same with paragraphs; book: a file is one"
        " document of raw text; jsonl: an object a line; else jsonl or sentences, as the name says",
        choices=tuple(documents.FORMS),
    )
    text_key: str = setting("text", "of an object of JSON lines, what holds the text, or a list of sentences")
    language: str = setting("en", "of raw text, by which it is cut into sentences: a code of ISO 639")
    vocab_file: str | None = setting(None, "vocabulary of the model")
    do_lower_case: bool = setting(True, "lower-case the text; false for cased models")

    def corpus(self) -> Corpus:
        """Returns the files.

        Raises:
          FlagError: there are none.
        """
        return Corpus(documents.find(self.input_file or ""), self.input_format, self.text_key, self.language)


@dataclasses.dataclass(frozen=True)
class MaskSettings:
    """What rows and masks are made; all flags of the published script, with its defaults."""

    max_seq_length: int = setting(128, "most tokens of a row", lowest=SHORTEST)
    short_seq_prob: float = setting(0.1, "share of the rows that are made shorter, of random length", lowest=0, highest=1)
    nsp: bool = setting(True, "pairs, of which half follow each other; without it rows are full sentences of one document")
    masked_lm_prob: float = setting(0.15, "share of the tokens of a row that are masked", lowest=0, highest=1)
    max_predictions_per_seq: int = setting(20, "most masks of a row: about max_seq_length * masked_lm_prob", lowest=1)
    do_whole_word_mask: bool = setting(False, "mask all pieces of a word, or none")
    random_seed: int = setting(12345, "of all that is drawn")
    dupe_factor: int = setting(10, "how often the text becomes rows, other ones with other masks each time", lowest=1)

    def rows(self) -> RowSettings:
        """Returns which rows are made."""
        return RowSettings(self.max_seq_length, self.short_seq_prob, self.nsp, self.random_seed, self.dupe_factor)

    def masking(self, vocabulary: Vocabulary) -> Masking:
        """Returns how rows of a vocabulary are masked."""
        return Masking(vocabulary, self.masked_lm_prob, self.max_predictions_per_seq, self.do_whole_word_mask, self.random_seed)


@dataclasses.dataclass(frozen=True)
class ShardSettings:
    """Where rows go, and who writes them."""

    output_file: str | None = setting(None, "TFRecord file, or files with commas")
    num_shards: int = setting(1, "files NAME-00000-of-00004.SUFFIX in the place of one", lowest=1)
    workers: int | None = setting(None, "processes; else one on each core; they do not change the shards", lowest=1)


_GROUPS = TextSettings, ShardSettings, MaskSettings
SETTINGS = tuple(settings_of(*_GROUPS))
_REQUIRED = "input_file", "output_file", "vocab_file"


@dataclasses.dataclass(frozen=True)
class PretrainingDataConfig:
    """What data to make of which text."""

    text: TextSettings
    shards: ShardSettings
    masks: MaskSettings


def configured(**values: Any) -> PretrainingDataConfig:
    """Makes a configuration of settings by name.

    Args:
      **values: the settings that are given, None for those that are not.

    Raises:
      FlagError: a setting is unknown, missing or has an unusable value.
    """
    given = named(SETTINGS, values)
    for name in _REQUIRED:
        if name not in given:
            raise FlagError(f"--{name} is required")
    names = [[row.name for row in settings_of(group)] for group in _GROUPS]
    text, shards, masks = ({name: given[name] for name in of if name in given} for of in names)
    return PretrainingDataConfig(TextSettings(**text), ShardSettings(**shards), MaskSettings(**masks))
