"""Settings of the vocabulary command, by action; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.corpus.settings import FORM, CorpusSettings
from bert_tf.settings import Setting, settings_of

FROM, TEXT = "from", "text"
TOP, MIN_FREQUENCY = 1000, 5
_MOST_PIECES = 1 << 24  # of any model, see `BertConfig`

_OVERWRITE = Setting("overwrite", bool, False, "replace what this command has written")
_FORM = tuple(row for row in settings_of(CorpusSettings) if row.name in FORM)
_TEXT = Setting(TEXT, str, None, "text to measure the vocabulary on: a file, a pattern, or - for a pipe")
SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "make": (
        Setting("output", str, None, "vocab.txt to write (required)"),
        Setting("size", int, 30522, "pieces, special ones and characters among them", 1, highest=_MOST_PIECES),
        Setting("do_lower_case", bool, True, "lower letters and strip accents, as uncased models want it"),
        Setting("unused", int, 0, "rows for words that come later: [unused0] and so on", 0, highest=_MOST_PIECES),
        Setting("min_frequency", int, 2, "how often a character, or a pair of pieces, has to occur to become a piece", 1),
        *_FORM,
        _OVERWRITE._replace(help="replace a file that is there"),
    ),
    "extend": (
        Setting("output", str, None, "folder to write (required); one that exists is kept unless --overwrite is given"),
        Setting("add", str, None, "file of words to add, one a line"),
        Setting(FROM, str, None, "text whose words save most pieces, instead or besides; a file, a pattern, or - for a pipe"),
        Setting("top", int, None, f"how many words of --from to add at most (default {TOP})", 1),
        Setting("min_frequency", int, None, f"how often a word of --from must occur (default {MIN_FREQUENCY})", 1),
        _TEXT._replace(help="text to measure before and after, where it is not that of --from"),
        Setting("do_lower_case", bool, None, "whether the model lowers letters; else as its folder says"),
        Setting("bert_config_file", str, None, "sizes of the model; else beside the weights"),
        Setting("vocab_file", str, None, "word pieces of the model; else beside the weights"),
        *_FORM,
        _OVERWRITE,
    ),
    "show": (
        _TEXT,
        Setting("do_lower_case", bool, None, "whether --text is lowered; else as the folder and the pieces say"),
        *_FORM,
    ),
}
