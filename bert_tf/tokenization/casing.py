"""Detects lower-casing: a checkpoint does not record it, and the signs may disagree.

The published Chinese vocabulary is uncased but holds the pieces `<S>` and `<T>`; Hugging Face's tokenizer for it
keeps capitals, none of which it knows (huggingface/transformers#9286). So clear pieces take precedence over
tokenizer settings.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.io import documents, files
from bert_tf.io.documents import DocumentError
from bert_tf.tokenization import text_rules
from bert_tf.tokenization.vocabulary import Vocabulary

# Beside the vocabulary, in Hugging Face's layout; the first goes before the second, as there.
TOKENIZER_FILES = (text_rules.CONFIG, text_rules.PIPELINE)

# Share of pieces with letters that have a capital: none in published uncased vocabularies, a third or more in cased ones.
# A few, such as names or symbols that somebody added, do not make a vocabulary cased.
_AS_UNCASED, _AS_CASED = 0.01, 0.1
_SPECIAL = re.compile(r"\[.*\]|<.*>", re.DOTALL)
_SIZES = re.compile(r"L-\d+_H-\d+")  # uncased_L-12_H-768_A-12, wwm_cased_L-24_H-1024_A-16
_PUBLISHED_UNCASED = {"chinese", "multilingual"}  # without "uncased" in the name

_LOG = logging.getLogger(__name__)  # Python's own, independent of TensorFlow and absl; commands show it too


class Sign(NamedTuple):
    """One piece of evidence for or against lower-casing."""

    lower_case: bool
    reason: str
    clear: bool = True


class Casing(NamedTuple):
    """What is known of a model's casing."""

    signs: tuple[Sign, ...]  # most reliable first

    @property
    def lower_case(self) -> bool:
        """The default; without a sign that of the published script."""
        return self.signs[0].lower_case if self.signs else True

    def against(self, *, lower_case: bool) -> bool:
        """Whether all signs contradict a setting, and clearly."""
        return bool(self.signs) and all(sign.clear and sign.lower_case != lower_case for sign in self.signs)

    def doubtful(self, *, lower_case: bool) -> bool:
        return any(sign.lower_case != lower_case for sign in self.signs) and not self.against(lower_case=lower_case)

    def __str__(self) -> str:
        return "; ".join(sign.reason for sign in self.signs)


@functools.lru_cache(maxsize=4)
def find(vocabulary: Vocabulary) -> Casing:
    """Returns the signs in a vocabulary's pieces, the files beside it and the name of its folder."""
    if vocabulary.own_rules:
        return Casing(())
    folder = vocabulary.folder
    beside = [] if folder is None else [_of_files(folder), _of_name(folder.name)]
    signs = [sign for sign in (_of_pieces(vocabulary.tokens), *beside) if sign is not None]
    return Casing(tuple(sorted(signs, key=lambda sign: not sign.clear)))


def is_told_beside(vocabulary: Path) -> bool:
    """Whether a vocabulary is in Hugging Face's layout, where a tokenizer knows its casing."""
    return any((vocabulary.parent / name).is_file() for name in TOKENIZER_FILES)


def _of_files(folder: Path) -> Sign | None:
    for name, read in zip(TOKENIZER_FILES, (_setting, _normalizer)):
        try:
            lower_case = read(documents.json_value(documents.read_text(folder / name, most=files.LARGEST)))
        except FileNotFoundError:
            continue
        except (OSError, DocumentError) as error:
            _LOG.warning("%s is not used: %s", folder / name, error)
            continue
        if isinstance(lower_case, bool):
            return Sign(lower_case, f"{name} says {'lower-cased' if lower_case else 'not lower-cased'}")
    return None


def _setting(content: Any) -> object:
    return content.get("do_lower_case") if isinstance(content, dict) else None


def _normalizer(content: Any) -> object:
    """Returns whether a tokenizer.json lower-cases, in a single normalizer or in a sequence."""
    step = content.get("normalizer") if isinstance(content, dict) else None
    if not isinstance(step, dict):
        return None
    if isinstance(step.get("normalizers"), list):
        return any(_normalizer({"normalizer": normalizer}) is True for normalizer in step["normalizers"])
    return True if step.get("type") == "Lowercase" else step.get("lowercase")


def _of_name(name: str) -> Sign | None:
    """Reads a folder's name only if it looks like a published model's: a user's own may mean anything."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    has_sizes = bool(_SIZES.search(name))
    if not has_sizes and "bert" not in words:
        return None
    if ("cased" in words) != ("uncased" in words):
        lower_case = "uncased" in words
    elif words & _PUBLISHED_UNCASED and has_sizes:
        lower_case = True
    else:
        return None
    return Sign(lower_case, f"the folder {name} is named as {'uncased' if lower_case else 'cased'} ones are")


def _of_pieces(tokens: Sequence[str]) -> Sign | None:
    lettered = [token for token in tokens if token.lower() != token.upper() and not _SPECIAL.fullmatch(token)]
    if not lettered:
        return None
    capitals = sum(token != token.lower() for token in lettered)
    share = capitals / len(lettered)
    reason = f"{capitals} of {len(lettered)} pieces with letters have a capital"
    return Sign(share < (_AS_UNCASED + _AS_CASED) / 2, reason, clear=not _AS_UNCASED < share < _AS_CASED)
