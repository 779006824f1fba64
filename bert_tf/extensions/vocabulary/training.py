"""Trains vocabularies with the WordPiece trainer of `tokenizers` (Hugging Face), on words from our tokenizer.

The trainer numbers its alphabet in hash-table order and breaks ties between equally frequent pairs by these
numbers, so each call would give another vocabulary. Here it receives all characters in a fixed order.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bert_tf import extras
from bert_tf.errors import FlagError
from bert_tf.extensions.vocabulary.counting import Counts
from bert_tf.tokenization.characters import IDEOGRAPHS, is_punctuation
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

UNUSED = "[unused{}]"  # unused rows, for words added later

_SUFFIX = "##"
LONGEST = 64  # characters of a training word: longer ones are not words, and TensorFlow Text cannot match them
_MOST_FED = 1 << 26  # words for the trainer, each as often as it occurs: some 20 s
_BLOCK = 4096  # words per text for the trainer


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained vocabulary."""

    tokens: tuple[str, ...]  # special ones, characters, then merges by frequency
    characters: int  # how many are known
    left_out: Counter[str]  # rare characters with counts; their words are [UNK]


def refuse_missing() -> None:
    if importlib.util.find_spec("tokenizers") is None:
        raise FlagError(f"vocabulary make needs tokenizers: {extras.install('vocabulary')}")


def train(counts: Counts, *, size: int, unused: int = 0, min_frequency: int = 2) -> Trained:
    """Makes a vocabulary of at most `size` pieces, the same on every call and for any number of threads.

    `min_frequency` applies to characters and adjacent pieces. Raises FlagError if the characters alone exceed the size.
    """
    characters: Counter[str] = Counter()
    for word, times in counts.words.items():
        for c in word:
            characters[c] += times
    common = sorted(c for c, times in characters.items() if times >= min_frequency)
    left_out = Counter({c: times for c, times in characters.items() if times < min_frequency})
    within_words = [_SUFFIX + c for c in common if not is_punctuation(c) and not IDEOGRAPHS.fullmatch(c)]
    initial = [*_special(unused), *common, *within_words]
    if not common:
        raise FlagError(f"--min_frequency={min_frequency}: no character of the corpus occurs that often; lower it")
    if len(initial) > size:
        raise FlagError(
            f"--size={size}: {len(_special(unused))} special pieces and {len(common)} characters, at the beginning of words and"
            f" within, are {len(initial)}; raise --size, or --min_frequency to leave rare characters out"
        )
    usable = [pair for pair in counts.ranked() if len(pair[0]) <= LONGEST and left_out.keys().isdisjoint(pair[0])]
    return Trained(_trained(usable, initial, size, min_frequency), len(common), left_out)


def _special(unused: int) -> list[str]:
    return [PAD, *map(UNUSED.format, range(unused)), UNK, CLS, SEP, MASK]


def _trained(pairs: Sequence[tuple[str, int]], initial: Sequence[str], size: int, min_frequency: int) -> tuple[str, ...]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    part = max(sum(times for _, times in pairs) // _MOST_FED, 1)
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=max(min_frequency // part, 1),
        special_tokens=list(initial),
        continuing_subword_prefix=_SUFFIX,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts((word, times // part) for word, times in pairs), trainer)
    number_of = tokenizer.get_vocab(with_added_tokens=False)
    return tuple(sorted(number_of, key=number_of.__getitem__))


def _texts(pairs: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yields texts that repeat each word by its count: the trainer takes no counts."""
    repeated = itertools.chain.from_iterable(itertools.repeat(word, times) for word, times in pairs)
    yield from iter(lambda: " ".join(itertools.islice(repeated, _BLOCK)), "")
