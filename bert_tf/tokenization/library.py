"""Tokenizers of a tokenizer.json, by the library `tokenizers`: byte-level BPE, Unigram, WordPiece, of any pipeline.

The file sets all rules: letters keep their case unless it lowers them; a special token written in a text is that token. A
SentencePiece model without such a file gets one from an extension.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import extras
from bert_tf.errors import BertError, FlagError, VocabularyError
from bert_tf.io import documents
from bert_tf.tokenization import roles, text_rules
from bert_tf.tokenization.characters import is_punctuation
from bert_tf.tokenization.vocabulary import BLANK_OF_SENTENCEPIECE, PUBLISHED, Vocabulary
from bert_tf.tokenization.wordpiece import Pieces

_MOST_GAPS = 100_000  # ids without a piece
_NO_ID = -1  # of the unknown token, if all characters are known
_FOUND = (roles.PAD, roles.UNK, roles.MASK)  # by name; the others by their places
_UNNAMED: Mapping[str, str] = {}
_BLANKS = ("\u0120", BLANK_OF_SENTENCEPIECE)  # the first is of byte-level BPE
_SWITCHES = {  # by a step's type: its switches that tokenizer_config.json may set, by their names there
    "BertNormalizer": {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "handle_chinese_chars",
    },
    "ByteLevel": {"add_prefix_space": "add_prefix_space"},
}
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can escape them, UTF-8 has none


class LibraryVocabulary(Vocabulary):
    """The pieces of a tokenizer.json, and its rules in `library`."""

    file = text_rules.PIPELINE
    own_rules = True

    def __init__(
        self,
        text: str,
        *,
        path: object = text_rules.PIPELINE,
        named_tokens: Mapping[str, str] = _UNNAMED,
        passes_segments: bool = True,
        words_as_they_are: bool = False,
    ) -> None:
        """`named_tokens`: special tokens by role, as files beside it say; without `passes_segments` that of all texts is 0.

        Raises VocabularyError for a file without padding or of an unknown template, FlagError without the library.
        """
        self._text, self.text_rules = text, PUBLISHED
        self.library = _library(text, path)
        self._ids = self.library.get_vocab(with_added_tokens=True)
        by_id = {number: token for token, number in self._ids.items()}
        if max(by_id, default=0) > len(by_id) + _MOST_GAPS:
            token = by_id[max(by_id)]
            raise VocabularyError(f"{token!r:.80} has the id {max(by_id)}, but there are {len(by_id)} pieces", path)
        self.tokens = tuple(by_id.get(number, f"[{number}]") for number in range(max(by_id, default=0) + 1))
        with _readable(path):
            template = roles.template(self.library, path)
        self.cls_id, self.sep_id, self.separators, segment = template
        self.second_segment = segment if passes_segments else 0
        if max(self.cls_id, self.sep_id) >= len(self.tokens):
            around = max(self.cls_id, self.sep_id)
            raise VocabularyError(f"puts a token {around} around texts, but there are {len(self.tokens)} pieces", path)
        unknown = getattr(self.library.model, "unk_token", None)  # of all but Unigram
        pad, unk, mask = (
            roles.token_of(role, self._ids, named_tokens, own=unknown if role == roles.UNK else None) for role in _FOUND
        )
        if not pad:
            raise VocabularyError(
                f"<pad> missing; is this a tokenizer of an encoder? {text_rules.CONFIG} may name another", path
            )
        self.pad_id, self.unk_id, self._mask_id = self._ids[pad], self._ids.get(unk, _NO_ID), self._ids.get(mask)
        self.special = (pad, unk, self.tokens[self.cls_id], self.tokens[self.sep_id], mask)
        self._config: dict[str, Any] = {
            role: token
            for role, token in zip(_FOUND, (pad, unk, mask))
            if token != roles.token_of(role, self._ids, {}, own=unknown if role == roles.UNK else None)
        }
        if self.second_segment != segment:
            self._config |= roles.without_segments()
        if words_as_they_are and self.to_text_of_words() != text:
            self._config[roles.AS_THEY_ARE] = True
        self.folder: Path | None = None
        beside = [documents.to_json(self._config, sort_keys=True)] if self._config else []
        self.fingerprint = hashlib.sha256("\n".join([text, *beside]).encode()).hexdigest()

    def word_piece(self, number: int) -> str:
        piece = self.name(number)
        if self._blank is None or piece in self.outside_texts:
            return piece
        text = self.library.decode([number]).strip().removeprefix(self._blank)
        if not text or "\ufffd" in text:  # a part of a character has no other name
            return piece
        begins = piece.startswith(self._blank) or all(map(is_punctuation, text))
        return text if begins else f"##{text}"

    @functools.cached_property
    def outside_texts(self) -> frozenset[str]:
        """Also added pieces, and numbers without a piece."""
        added = (token.content for token in self.library.get_added_tokens_decoder().values())
        gaps = (token for token in self.tokens if token not in self._ids)
        return super().outside_texts.union(added, gaps)

    @functools.cached_property
    def _blank(self) -> str | None:
        """The character that pieces begin with for a blank before them, None in a vocabulary that marks continuations."""
        if getattr(self.library.model, "continuing_subword_prefix", None) == "##":  # of WordPiece; others may have Markdown's
            return None
        return next((mark for mark in _BLANKS if any(token.startswith(mark) for token in self.tokens)), None)

    def to_text(self) -> str:
        return self._text

    def files(self) -> dict[str, str]:
        """A second file says which tokens are special, if their names do not, and that segments are not passed."""
        beside = {text_rules.CONFIG: documents.to_json(self._config, indent=2) + "\n"} if self._config else {}
        return {self.file: self._text, **beside}

    def to_text_of_words(self) -> str:
        """Each word has a blank before it, the first too: RoBERTa knows words so."""
        if roles.AS_THEY_ARE in self._config:
            return self._text
        content = documents.json_value(self._text)
        steps = [step for step in _steps(content.get("pre_tokenizer")) if step.get("add_prefix_space") is False]
        for step in steps:
            step["add_prefix_space"] = True
        return documents.to_json(content) if steps else self._text


class LibraryTokenizer:
    """Splits texts as `tokenizers` does."""

    lower_case = False  # the file has rules of its own

    def __init__(self, vocabulary: LibraryVocabulary) -> None:
        self.vocabulary = vocabulary
        self._library = vocabulary.library

    def ids(self, text: str) -> list[int]:
        ids: list[int] = self._encoded(self._library, _valid(text)).ids
        return ids

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        encoding = self._encoded(self._of_words, list(map(_valid, words)), is_pretokenized=True)
        ids: list[list[int]] = [[] for _ in words]
        for number, word in zip(encoding.ids, encoding.word_ids):
            ids[word].append(number)
        return ids

    def pieces(self, text: str) -> Pieces:
        """A blank before a piece is not in its range, whether or not it is in the piece."""
        encoding = self._encoded(self._library, _valid(text))
        ranges = np.array([_trimmed(text, *offsets) for offsets in encoding.offsets], np.int32).reshape(-1, 2)
        return Pieces(np.array(encoding.ids, np.int32), *np.maximum.accumulate(ranges, axis=0).T)

    def begins(self, text: str, pieces: Pieces) -> list[bool]:
        return [_divided(text, end, start) for end, start in zip([0, *pieces.ends[:-1].tolist()], pieces.starts.tolist())]

    def _encoded(self, library: Any, text: str | list[str], **options: bool) -> Any:
        with _readable(self.vocabulary.folder or self.vocabulary.file):
            return library.encode(text, add_special_tokens=False, **options)

    @functools.cached_property
    def _of_words(self) -> Any:
        text = self.vocabulary.to_text_of_words()
        return self._library if text == self.vocabulary.to_text() else _library(text)


def read_vocabulary(content: str, source: Path, *, words_as_they_are: bool) -> LibraryVocabulary:
    """The vocabulary of a tokenizer.json, whose content may be made of another file, and of the files beside it."""
    beside: dict[str, Any] = {
        "named_tokens": roles.named_in(source.parent),
        "passes_segments": roles.passes_segments(source.parent),
        "words_as_they_are": words_as_they_are or roles.reads_words_as_they_are(source.parent),
    }
    vocabulary = LibraryVocabulary(_as_configured(content, source.parent), path=source, **beside)
    text = _with_added(vocabulary, source)
    if text is not None:
        vocabulary = LibraryVocabulary(text, path=source, **beside)
    vocabulary.folder = source.absolute().parent
    return vocabulary


def _as_configured(content: str, folder: Path) -> str:
    """The text with the switches of tokenizer_config.json, which go first in transformers."""
    values, switched = text_rules.content(folder / text_rules.CONFIG), False
    switches = {key for of_step in _SWITCHES.values() for key in of_step} & values.keys()
    pipeline = _parsed(content) if switches else {}
    for part in ("normalizer", "pre_tokenizer"):
        step = pipeline.get(part) or {}
        kind = str(step.get("type")) if isinstance(step, dict) else ""
        class_name = str(values.get("tokenizer_class") or "BertTokenizer")
        if kind == "BertNormalizer" and not re.fullmatch(text_rules.WORD_PIECE_CLASSES, class_name):
            continue
        for key, name in _SWITCHES.get(kind, {}).items():
            is_set = isinstance(values.get(key), bool) or (key == "strip_accents" and values.get(key, "") is None)
            if is_set and step.get(name) is not values[key]:
                step[name], switched = values[key], True
    return documents.to_json(pipeline) if switched else content


def _parsed(content: str) -> dict[str, Any]:
    """Empty if it is damaged: the library says how."""
    with contextlib.suppress(documents.DocumentError):
        value = documents.json_value(content)
        return value if isinstance(value, dict) else {}
    return {}


def adds_blank(text: str) -> bool | None:
    """Whether a tokenizer.json puts a blank before texts, None if it has no such switch."""
    switches = [step["add_prefix_space"] for step in _steps(_parsed(text).get("pre_tokenizer")) if "add_prefix_space" in step]
    return any(switches) if switches else None


def _with_added(vocabulary: LibraryVocabulary, path: Path) -> str | None:
    """Returns the file with the tokens that only other files add; None if there are none, as usual."""
    entries = [entry for entry in text_rules.added_beside(path.parent) if entry["content"] not in vocabulary]
    for number, entry in enumerate(entries, start=len(vocabulary)):
        if entry["id"] != number:
            mismatch = (
                f"the added token {entry['content']!r:.80} has the id {entry['id']}, but the tokenizer ends at {number - 1}"
            )
            raise VocabularyError(f"{mismatch}; take the files from one folder", path)
    if not entries:
        return None
    from tokenizers import AddedToken

    tokenizer = _library(vocabulary.to_text(), path)
    tokenizer.add_tokens([AddedToken(**{name: value for name, value in entry.items() if name != "id"}) for entry in entries])
    text: str = tokenizer.to_str()
    return text


def _library(text: str, path: object = "tokenizer.json") -> Any:
    if importlib.util.find_spec("tokenizers") is None:
        raise FlagError(f"{path} needs tokenizers: {extras.install('vocabulary')}")
    from tokenizers import Tokenizer

    with _readable(path):
        tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@contextlib.contextmanager
def _readable(path: object) -> Iterator[None]:
    """The library has no class of errors, and an error in its own code derives from BaseException."""
    try:
        yield
    except (BertError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise VocabularyError(f"not a tokenizer that `tokenizers` reads: {error}", path) from error


def _steps(step: Any) -> Iterator[dict[str, Any]]:
    """The steps of a part of the pipeline, single or in a sequence."""
    if isinstance(step, dict):
        yield step
        for inner in step.get("pretokenizers", ()):
            yield from _steps(inner)


def _valid(text: str) -> str:
    return _LONE_SURROGATES.sub("\ufffd", text)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    blanks = end - start - len(text[start:end].lstrip())
    return (start + blanks if start + blanks < end else start), end


def _divided(text: str, end: int, start: int) -> bool:
    """Whether a piece's end and the next one's start divide two words; several pieces may share one character."""
    return start > end or (start == end and any(map(is_punctuation, text[max(end - 1, 0) : end + 1])))
