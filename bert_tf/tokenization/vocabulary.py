"""The word-piece vocabulary: tokens to ids and back."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_tf.errors import VocabularyError
from bert_tf.io import encodings, files
from bert_tf.tokenization import text_rules
from bert_tf.tokenization.text_rules import Added, TextRules

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
UNUSED = re.compile(r"\[unused\d+\]")

BLANK_OF_SENTENCEPIECE = "\u2581"  # before pieces that begin a word
PUBLISHED = TextRules()

# Stripped from lines. Fewer than str.strip: U+2028 is a piece of the published Chinese vocabulary.
_BLANKS = " \t\r\n"


class Vocabulary:
    """An ordered list of word pieces; a piece's position is its id.

    `fingerprint` is the SHA-256 of the pieces in order, `folder` that of the source file or None; `pad_id`, `unk_id`,
    `cls_id`, `sep_id` and `mask_id` are the special tokens; `unk_id` is -1 if all characters are known.
    """

    file = "vocab.txt"  # its name beside a model
    separators = 1  # [SEP] between two texts
    second_segment = 1  # of the second text; that of the first is 0
    special: tuple[str, ...] = SPECIAL_TOKENS  # an empty one is missing
    own_rules = False  # whether the file also sets splitting and lower-casing

    def __init__(self, tokens: Sequence[str], *, rules: TextRules = PUBLISHED, path: object = "vocabulary") -> None:
        """Raises VocabularyError for blank or repeated pieces, NUL, missing special tokens, or no other pieces."""
        self.tokens, self.text_rules = tuple(tokens), rules
        self._ids: dict[str, int] = {}
        self._mask_id: int | None
        for line, token in enumerate(self.tokens, start=1):
            if not token.strip(_BLANKS):
                raise VocabularyError("blank line in the vocabulary; remove it only if the ids of the model allow", path, line)
            if "\0" in token:
                raise VocabularyError(f"{token!r:.80} holds a NUL character, which no text keeps", path, line)
            first = self._ids.setdefault(token, line - 1)
            if first != line - 1:
                raise VocabularyError(f"{token!r} is already in line {first + 1}; every piece has one id", path, line)
        missing = [token for token in SPECIAL_TOKENS if token not in self._ids]
        if missing:
            raise VocabularyError(f"{', '.join(missing)} missing; is this a BERT vocabulary, one piece a line?", path)
        if all(token in SPECIAL_TOKENS or UNUSED.fullmatch(token) for token in self.tokens):
            raise VocabularyError("only special and unused pieces, so every word would be [UNK]; take another vocabulary", path)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self._mask_id = self.ids(SPECIAL_TOKENS)
        self.folder: Path | None = None
        rule_lines = [rules.to_text()] if rules != PUBLISHED else []
        self.fingerprint = hashlib.sha256("\n".join([*self.tokens, *rule_lines]).encode()).hexdigest()

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Reads a vocab.txt: UTF-8, one piece per line."""
        if Path(path).suffix in (".json", ".model"):
            raise VocabularyError("only a WordPiece vocabulary will do here, a vocab.txt with one piece a line", path)
        try:
            data = files.read_bytes(path)
        except OSError as error:
            raise VocabularyError(f"cannot read the vocabulary: {files.reason(error)}", path) from error
        other_format = encodings.instead_of_text(data)
        if other_format:
            raise VocabularyError(other_format, path)
        # Only "\n" ends a line: str.splitlines would cut at U+2028 too.
        lines = data.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
        tokens = []
        for number, line in enumerate(lines, start=1):
            try:
                tokens.append(line.decode().strip(_BLANKS))
            except UnicodeDecodeError as error:
                raise VocabularyError(f"not UTF-8 at byte {error.start} of the line", path, number) from error
        if sum(token.startswith(BLANK_OF_SENTENCEPIECE) for token in tokens) > len(tokens) // 10:
            raise VocabularyError(
                f"pieces begin with {BLANK_OF_SENTENCEPIECE}, as SentencePiece's: their model is needed, a spiece.model or a"
                " tokenizer.json, without this file beside it",
                path,
            )
        folder = Path(path).absolute().parent
        rules = text_rules.read_rules(folder)
        _append(tokens, rules.added, path)
        added = [token for token in rules.added if token.content not in SPECIAL_TOKENS]  # in a text, these are cut as published
        vocabulary = cls(tokens, rules=rules._replace(added=tuple(added)), path=path)
        vocabulary.folder = folder
        return vocabulary

    @property
    def mask_id(self) -> int:
        """Raises VocabularyError if there is no mask token."""
        if self._mask_id is None:
            raise VocabularyError(
                "has no mask token, and masks are needed here; take a model that was trained with one", self.file
            )
        return self._mask_id

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def id(self, token: str) -> int:
        """Returns the id of a piece, that of [UNK] if it is unknown."""
        return self._ids.get(token, self.unk_id)

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of pieces; raises KeyError for an unknown one."""
        return [self._ids[token] for token in tokens]

    def name(self, number: int) -> str:
        """Returns a piece, or the bracketed number of a padding row beyond the pieces."""
        return self.tokens[number] if number < len(self.tokens) else f"[{number}]"

    def word_piece(self, number: int) -> str:
        """Returns a piece in BERT's notation, whatever the tokenizer's own: ## before one that continues a word."""
        return self.name(number)

    @property
    def outside_texts(self) -> frozenset[str]:
        """Pieces that no text is cut into: special and unused ones."""
        return frozenset((*self.special, *filter(UNUSED.fullmatch, self.tokens)))

    @property
    def pieces(self) -> tuple[str, ...]:
        """The tokens that words are cut into: without added ones, which come last."""
        added, count = {token.id for token in self.text_rules.added}, len(self.tokens)
        while count - 1 in added:
            count -= 1
        return self.tokens[:count]

    def to_text(self) -> str:
        return "\n".join(self.pieces) + "\n"

    def files(self) -> dict[str, str]:
        """Returns the files that define the tokenizer, by name."""
        rules = {} if self.text_rules == PUBLISHED else {text_rules.CONFIG: self.text_rules.to_text()}
        return {self.file: self.to_text(), **rules}

    def to_text_of_words(self) -> str:
        """Content of the file for clients that give texts as words."""
        return self.to_text()


def _append(tokens: list[str], added: Iterable[Added], path: object) -> None:
    """Adds tokens whose ids follow those of the pieces; raises VocabularyError for other ids that are not theirs."""
    for token in added:
        if token.id == len(tokens):
            tokens.append(token.content)
        elif token.id > len(tokens):
            mismatch = f"the added token {token.content!r:.80} has the id {token.id}"
            raise VocabularyError(f"{mismatch}, but the pieces end at {len(tokens) - 1}; restore the vocabulary", path)
        elif tokens[token.id] != token.content:
            mismatch = f"the added token {token.content!r:.80} has the id {token.id}"
            raise VocabularyError(f"{mismatch}, which is {tokens[token.id]!r:.80} here; take the files from one folder", path)
