"""Configuration of pre-training data, made from settings by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.corpus.masking import Masking
from bert_tf.corpus.rows import RowSettings
from bert_tf.corpus.settings import LONGEST_ROW, CorpusSettings, MaskedRowSettings
from bert_tf.errors import FlagError
from bert_tf.settings import fields_of, named, setting, settings_of
from bert_tf.tokenization.vocabulary import Vocabulary

_MOST_DUPLICATES = 1000
_MOST_SHARDS = 99_999  # names have five digits
_MOST_WORKERS = 1024
SHORTEST = 5  # [CLS], [SEP], [SEP] and a piece of either sentence


@dataclasses.dataclass(frozen=True)
class TextSettings(CorpusSettings):
    vocab_file: str | None = setting(None, "vocabulary of the model")
    do_lower_case: bool = setting(True, "lower-case the text; false for cased models")


@dataclasses.dataclass(frozen=True)
class MaskSettings(MaskedRowSettings):
    """Rows and masks: all flags of the published script, with its defaults."""

    max_seq_length: int = setting(128, "most tokens of a row", lowest=SHORTEST, highest=LONGEST_ROW)
    dupe_factor: int = setting(
        10, "how often the text becomes rows, other ones with other masks each time", lowest=1, highest=_MOST_DUPLICATES
    )

    def rows(self) -> RowSettings:
        return RowSettings(self.max_seq_length, self.short_seq_prob, self.nsp, self.random_seed, self.dupe_factor)

    def masking(self, vocabulary: Vocabulary) -> Masking:
        return Masking(vocabulary, self.masked_lm_prob, self.max_predictions_per_seq, self.do_whole_word_mask, self.random_seed)


@dataclasses.dataclass(frozen=True)
class ShardSettings:
    output_file: str | None = setting(None, "TFRecord file, or files with commas")
    num_shards: int = setting(1, "files NAME-00000-of-00004.SUFFIX instead of one", lowest=1, highest=_MOST_SHARDS)
    workers: int | None = setting(
        None, "processes at most; else one on each core; they do not change the shards", lowest=1, highest=_MOST_WORKERS
    )


SETTINGS = tuple(settings_of(TextSettings, ShardSettings, MaskSettings))
_REQUIRED = "input_file", "output_file", "vocab_file"


@dataclasses.dataclass(frozen=True)
class PretrainingDataConfig:
    text: TextSettings
    shards: ShardSettings
    masks: MaskSettings


def configured(**values: Any) -> PretrainingDataConfig:
    given = named(SETTINGS, values)
    for name in _REQUIRED:
        if name not in given:
            raise FlagError(f"--{name} is required")
    return PretrainingDataConfig(
        fields_of(TextSettings, given), fields_of(ShardSettings, given), fields_of(MaskSettings, given)
    )
