"""What Hugging Face's files beside a vocabulary say about texts, apart from their case (see `casing`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf import run_layout
from bert_tf.errors import VocabularyError
from bert_tf.io import documents, files
from bert_tf.io.documents import DocumentError
from bert_tf.io.log_form import log
from bert_tf.tokenization.characters import Rules

CONFIG, PIPELINE, ADDED = run_layout.TEXT_RULES, "tokenizer.json", "added_tokens.json"
FILES = (CONFIG, PIPELINE, ADDED)
WORD_PIECE_CLASSES = "(Bert|DistilBert|Electra|MPNet|MobileBert)Tokenizer(Fast)?"  # in transformers

_DECODER = "added_tokens_decoder"
_OF_SLOW_TOKENIZERS: Mapping[str, Any] = {"do_basic_tokenize": True, "never_split": None}  # with their defaults
# Values with which words are cut as here; others need another program, as MeCab, or have other pieces.
_OF_WORD_PIECES = {
    "word_tokenizer_type": "basic",
    "subword_tokenizer_type": "wordpiece",
    "tokenizer_class": f"{WORD_PIECE_CLASSES}|PreTrainedTokenizer(Fast)?|TokenizersBackend",
}
_STEPS = frozenset({"BertNormalizer", "Lowercase", "StripAccents", "NFD"})  # of normalizers: what the rules here do

_NUMBER = re.compile("[0-9]{1,18}")
_SIDES = ("single_word", "lstrip", "rstrip", "normalized", "special")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_NO_TOKEN = re.compile("[\0\n\ud800-\udfff]")  # no line of a vocabulary holds them


class Added(NamedTuple):
    """A token that stays whole wherever a text has it."""

    content: str
    id: int
    is_normalized: bool = False  # sought in the text as the other rules leave it
    is_single_word: bool = False  # not within a word

    def entry(self) -> dict[str, Any]:
        """Returns its entry in Hugging Face's files."""
        switches = {"single_word": self.is_single_word, "lstrip": False, "rstrip": False, "normalized": self.is_normalized}
        return {"content": self.content, **switches, "special": not self.is_normalized}


class TextRules(NamedTuple):
    strip_accents: bool | None = None  # None: as letters are lowered
    split_ideographs: bool = True
    added: tuple[Added, ...] = ()

    def rules(self, *, lower_case: bool) -> Rules:
        strip = lower_case if self.strip_accents is None else self.strip_accents
        return Rules(lower_case, strip, self.split_ideographs)

    def values(self) -> dict[str, Any]:
        """Returns the entries of a tokenizer_config.json."""
        added = {str(token.id): token.entry() for token in self.added}
        values = {switch.key: getattr(self, switch.field) for switch in _SWITCHES}
        return {**values, **({_DECODER: added} if added else {})}

    def to_text(self) -> str:
        return documents.to_json(self.values(), indent=2) + "\n"


class _Switch(NamedTuple):
    field: str
    key: str  # in tokenizer_config.json
    normalizer_key: str  # in the BertNormalizer of a tokenizer.json
    values: tuple[object, ...]


_SWITCHES = (
    _Switch("strip_accents", "strip_accents", "strip_accents", (True, False, None)),
    _Switch("split_ideographs", "tokenize_chinese_chars", "handle_chinese_chars", (True, False)),
)


def read_rules(folder: Path) -> TextRules:
    """Reads the files that are there, the first one that sets a value; VocabularyError for values that none can have."""
    config, pipeline, added = (content(folder / name) for name in FILES)
    _refuse_other_tokenizers(config, folder / CONFIG)
    normalizer = None if _is_of_export(pipeline) else pipeline.get("normalizer")
    places = (folder / CONFIG, config), (folder / PIPELINE, _of_normalizer(normalizer, folder / PIPELINE))
    switches = {}
    for switch in _SWITCHES:
        for (path, values), key in zip(places, (switch.key, switch.normalizer_key)):
            if key in values and switch.field not in switches:
                switches[switch.field] = _checked(values[key], key, switch, path)
    for key in sorted(_OF_SLOW_TOKENIZERS.keys() & config.keys()):
        if config[key] != _OF_SLOW_TOKENIZERS[key]:
            log.warning(
                "%s: %s is not applied; the fast tokenizers of transformers do not apply it either", folder / CONFIG, key
            )
    special = config.get("additional_special_tokens")
    special = special if isinstance(special, list) else []
    listed = (
        *_of_entries(config.get(_DECODER) or [], folder / CONFIG),
        *_of_entries(pipeline.get("added_tokens") or [], folder / PIPELINE),
        *(
            _added({"content": content, "id": number, "special": content in special}, folder / ADDED)
            for content, number in added.items()
        ),
    )
    tokens: dict[str, Added] = {}
    for token in listed:
        first = tokens.setdefault(token.content, token)
        if first.id != token.id:
            raise VocabularyError(f"the added token {token.content!r:.80} has the ids {first.id} and {token.id}", folder)
    return TextRules(**switches, added=tuple(sorted(tokens.values(), key=lambda token: token.id)))


def added_beside(folder: Path) -> list[dict[str, Any]]:
    """Returns what other files than a tokenizer.json say of added tokens, by rising id: content, id, and any switches.

    Unlike in a vocab.txt, a token may be blank, or a line break.
    """
    path = folder / CONFIG
    tokens: dict[str, dict[str, Any]] = {}
    for entry in _entries(content(path).get(_DECODER) or {}, path):
        number = _id(entry, path)
        switches = {name: entry[name] is True for name in _SIDES if name in entry}
        tokens[entry["content"]] = {"content": entry["content"], "id": number, **switches}
    for token, number in content(folder / ADDED).items():
        tokens.setdefault(token, {"content": token, "id": _id({"content": token, "id": number}, folder / ADDED)})
    return sorted(tokens.values(), key=lambda entry: int(entry["id"]))


def truncation_side(folder: Path) -> str:
    """Which end of long texts transformers cuts: as its own file says, else that of the pipeline."""
    truncation = content(folder / PIPELINE).get("truncation")
    direction = truncation.get("direction") if isinstance(truncation, dict) else None
    return str(content(folder / CONFIG).get("truncation_side") or direction or "right").lower()


def content(path: Path) -> Mapping[str, Any]:
    """Returns the object in a JSON file, empty if there is no file; VocabularyError for anything else."""
    try:
        value = documents.json_value(documents.read_text(path, most=files.LARGEST))  # a tokenizer.json may have 34 MB
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise VocabularyError(f"cannot read what it says of texts: {files.reason(error)}", path) from error
    except DocumentError as error:
        raise VocabularyError(f"{error.problem}; fetch it again, or delete it", path, error.line) from error
    if not isinstance(value, dict):
        raise VocabularyError("expected a JSON object", path)
    return value


def _refuse_other_tokenizers(config: Mapping[str, Any], path: Path) -> None:
    for key, of_word_pieces in _OF_WORD_PIECES.items():
        if config.get(key) is not None and not re.fullmatch(of_word_pieces, str(config[key])):
            raise VocabularyError(
                f"{key} is {config[key]!r:.80}: of a vocab.txt only BERT's WordPiece is read, which cuts words at blanks and"
                " punctuation; take a model with that or with a tokenizer.json instead, such as XLM-RoBERTa",
                path,
            )


def _is_of_export(pipeline: Mapping[str, Any]) -> bool:
    """Whether `export` wrote it: the rules here as classes of characters, whose values are beside it if they are others."""
    words = pipeline.get("pre_tokenizer")
    steps = words.get("pretokenizers") if isinstance(words, dict) else None
    return (
        isinstance(steps, list)
        and len(steps) > 1
        and all(isinstance(one, dict) and one.get("type") == "Split" for one in steps)
    )


def _of_normalizer(normalizer: Any, path: Path) -> Mapping[str, Any]:
    """Returns the values of a BertNormalizer, alone or in a sequence, or what other steps do instead; empty without any."""
    steps = list(_steps(normalizer))
    others = sorted({str(step.get("type")) for step in steps} - _STEPS)
    if others:
        log.warning("%s: %s of its normalizer is not applied", path, ", ".join(others))
    strips = any(step.get("type") == "StripAccents" for step in steps)
    instead = {"strip_accents": strips, "handle_chinese_chars": False} if steps else {}
    return next((step for step in steps if step.get("type") == "BertNormalizer"), instead)


def _steps(normalizer: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(normalizer, dict) and isinstance(normalizer.get("normalizers"), list):
        for step in normalizer["normalizers"]:
            yield from _steps(step)
    elif isinstance(normalizer, dict):
        yield normalizer


def _checked(value: Any, key: str, switch: _Switch, path: Path) -> Any:
    if not any(value is allowed for allowed in switch.values):
        expected = "true, false or null" if None in switch.values else "true or false"
        raise VocabularyError(f"{key} is {value!r:.80}, expected {expected}", path)
    return value


def _of_entries(entries: Any, path: Path) -> Iterator[Added]:
    return (_added(entry, path) for entry in _entries(entries, path))


def _entries(entries: Any, path: Path) -> list[Any]:
    """Reads a list of tokens, or tokens by id."""
    if isinstance(entries, dict):
        entries = [
            {**entry, "id": int(number)} if isinstance(entry, dict) and _NUMBER.fullmatch(number) else None
            for number, entry in entries.items()
        ]
    if not isinstance(entries, list):
        raise VocabularyError("the added tokens are no list", path)
    return entries


def _added(entry: Any, path: Path) -> Added:
    number = _id(entry, path)
    content = entry["content"]
    if not content.strip() or _NO_TOKEN.search(content):
        raise VocabularyError(f"an added token is {content!r:.80}, expected a text", path)
    is_normalized = entry.get("normalized", entry.get("special") is not True) is True
    return Added(content, number, is_normalized, entry.get("single_word") is True)


def _id(entry: Any, path: Path) -> int:
    if not isinstance(entry, dict):
        raise VocabularyError(f"an added token is {entry!r:.80}, expected one with content and id", path)
    content, number = entry.get("content"), entry.get("id")
    if not isinstance(content, str) or not content or _LONE_SURROGATES.search(content):
        raise VocabularyError(f"an added token is {content!r:.80}, expected a text", path)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise VocabularyError(f"the added token {content!r:.80} has the id {number!r:.80}, expected a whole number", path)
    return number
