"""Texts of all that a tokenizer may meet, by a seed."""
# ruff: noqa: RUF001  (letters that look alike are what is tested)

import random
import string
import sys
import unicodedata
from collections.abc import Callable

from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

_SURROGATES = range(0xD800, 0xE000)
_POINTS = [point for point in range(sys.maxunicode + 1) if point not in _SURROGATES]
CHARACTERS = [chr(point) for point in _POINTS]
# Of the planes that have characters.
ASSIGNED = [chr(point) for point in (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000))]
# Whatever a rule changes, deletes, sorts or divides at.
CHANGED = [
    c
    for c in ASSIGNED
    if unicodedata.category(c)
    in ("Cc", "Cf", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk")
    or c != c.lower()
    or unicodedata.normalize("NFD", c) != c
]
SORTED = [c for c in ASSIGNED if unicodedata.combining(c)]  # marks with an order; of few of them something is left
SORTED_AND_KEPT = [c for c in SORTED if unicodedata.category(c) != "Mn"]
BLANKS = "\t\n\r \x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
DELETED = "\0\ufffd\u00ad\u200d\u200e\u061c\U000e0041"
SIGMAS = "ΣσςAα'.\u0345\u0301ʰ\u200d-"  # a capital sigma, and what it looks at and past
CASES = "ßẞİIıſKÅΩǅǰŉﬁﬃ½①Ⅷ𝔸"
NOT_CHARACTERS = "\ufdd0\ufffe\uffff\U0001fffe\U0010ffff"
_SOME_LETTERS = "éßσςΣαабв가각ᄀᆨあア中文\u4e00\ufa0e\U00020000\u0301\u302e\U0001d165\ufffd\ufdd0"
SPECIAL = (*SPECIAL_TOKENS, "[unused1]", "##a", "#", "[", "don't")


def vocabulary(seed: int) -> Vocabulary:
    """Returns pieces of one to four characters of many scripts, some that no text can have among them."""
    rng = random.Random(seed)
    letters = string.ascii_letters + string.digits + _SOME_LETTERS
    some = [*letters, *rng.sample(CHARACTERS, 2000), *rng.sample(CHANGED, 500), *SORTED_AND_KEPT]
    longer = ["".join(rng.choices(letters, k=rng.randint(2, 4))) for _ in range(3000)]
    pieces = [piece for piece in (*some, *string.punctuation, *longer) if piece.strip(" \t\r\n") and "\0" not in piece]
    kept = [piece for piece in pieces if rng.random() < 0.9]
    suffixes = [f"##{piece}" for piece in pieces if rng.random() < 0.7]
    return Vocabulary(list(dict.fromkeys([*SPECIAL_TOKENS, "##", *kept, *suffixes])))


def texts(count: int, seed: int, pieces: Vocabulary) -> list[str]:
    """Returns texts of up to 14 parts, each of another kind.

    Args:
      count: how many.
      seed: the same ones for the same seed.
      pieces: some parts are of these.
    """
    rng = random.Random(seed)
    kinds = _kinds(rng, pieces)
    return ["".join(rng.choice(kinds)() for _ in range(rng.randrange(15))) for _ in range(count)]


def _kinds(rng: random.Random, pieces: Vocabulary) -> list[Callable[[], str]]:
    plain = [piece.removeprefix("##") for piece in pieces.tokens]

    def some_of(characters: object, most: int = 1) -> Callable[[], str]:
        return lambda: "".join(rng.choice(characters) for _ in range(rng.randint(1, most)))

    def long_word() -> str:
        size = MAX_WORD_CHARACTERS // 2 if rng.random() < 0.3 else MAX_WORD_CHARACTERS
        return rng.choice("aé中-Σ가") * (size + rng.randint(-2, 2)) if rng.random() < 0.1 else rng.choice("aAbB")

    return [
        *(some_of(group, 4) for group in (CHARACTERS, CHANGED, SORTED, SORTED_AND_KEPT, SIGMAS, string.printable)),
        *(some_of(group) for group in (CHARACTERS[:0x250], BLANKS, DELETED, CASES, NOT_CHARACTERS, SPECIAL, plain, plain)),
        lambda: rng.choice(plain).upper(),
        lambda: chr(rng.choice([rng.randrange(0x3400, 0xA000), rng.randrange(0xAC00, 0xD7A4), rng.randrange(0xF900, 0xFB00)])),
        lambda: " ",
        long_word,
    ]


def bytes_of(count: int, seed: int) -> list[bytes]:
    """Returns strings that are mostly no UTF-8: bytes at random, and texts in which some are missing or others.

    Args:
      count: how many.
      seed: the same ones for the same seed.
    """
    rng = random.Random(seed)

    def damaged() -> bytes:
        data = bytearray("".join(rng.choices(CHARACTERS, k=rng.randint(1, 6))), "utf-8")
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(data))
            data[place : place + rng.randrange(2)] = bytes(rng.choices(range(256), k=rng.randrange(2)))
            data += rng.choice([b"\xed\xa0\x80", b"\xc0\x80", b"\xf5", b"\xe2\x82", b"\xf0\x9f\x98", b"ab", b" "])
        return bytes(data)

    return [damaged() if rng.random() < 0.8 else bytes(rng.choices(range(256), k=rng.randrange(9))) for _ in range(count)]
