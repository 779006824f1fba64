"""Makes a vocabulary from a corpus, with the WordPiece trainer of `tokenizers` (Hugging Face), on words from our tokenizer.

The trainer numbers its alphabet in hash-table order and breaks ties between equally frequent pairs by these
numbers, so each call would give another vocabulary. Here it receives all characters in a fixed order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf import extras, run_layout
from bert_tf.errors import FlagError, OutputError
from bert_tf.extensions.vocabulary import show
from bert_tf.extensions.vocabulary.counting import LONGEST, Counts, Fertility, fertility_of
from bert_tf.extensions.vocabulary.texts import CorpusSettings, documents
from bert_tf.io import atomic, lock
from bert_tf.io.files import PIPE
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, counted
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import group, read_settings, setting
from bert_tf.tokenization.characters import IDEOGRAPHS, Rules, is_punctuation
from bert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_MOST_PIECES = 1 << 24  # of any model, see `BertConfig`
_SUFFIX = "##"
_MOST_FED = 1 << 26  # words for the trainer, each as often as it occurs: some 20 s
_BLOCK = 4096  # words per text for the trainer


@dataclasses.dataclass(frozen=True)
class MakeSettings:
    corpus: tuple[str, ...] = setting(None, "files, patterns or - for a pipe", positional=True, required=True)
    output: str = setting(None, "vocab.txt to write", required=True, written=True)
    size: int = setting(30522, "vocabulary size, special pieces and characters included", lowest=1, highest=_MOST_PIECES)
    do_lower_case: bool = setting(True, "lower-case and strip accents, as uncased models require")
    unused: int = setting(0, "spare rows for words added later: [unused0] and so on", lowest=0, highest=_MOST_PIECES)
    min_frequency: int = setting(2, "minimum occurrences of a character or pair of pieces", lowest=1)
    form: CorpusSettings = group(CorpusSettings, without=("input_file",))
    overwrite: bool = setting(False, "replace an existing file")

    def __post_init__(self) -> None:
        if self.unused >= self.size:
            raise FlagError(f"--unused={self.unused}: --size={self.size} counts these rows too; raise it")


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained vocabulary."""

    tokens: tuple[str, ...]  # special ones, characters, then merges by frequency
    characters: int  # how many are known
    left_out: Counter[str]  # rare characters with counts; their words are [UNK]


@dataclasses.dataclass(frozen=True)
class Made(Printed):
    output: Path
    vocabulary: Vocabulary
    trained: Trained  # the same vocabulary, and the characters it lacks
    fertility: Fertility  # on the corpus

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(MakeSettings)
def make_vocabulary(corpus: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **settings: Any) -> Made:
    """Writes a vocabulary of a corpus; as `python -m bert_tf vocabulary make`.

        bert_tf.make_vocabulary("books/*.txt", size=8000, output="vocab.txt")

    Args:
      corpus: a file or a pattern, or several.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return make(read_settings(MakeSettings, {"corpus": corpus, **settings}))


def make(settings: MakeSettings) -> Made:
    """Writes the same file on every call, regardless of the number of cores."""
    refuse_missing()
    output = _output(settings)
    if os.path.realpath(output) in map(os.path.realpath, documents.find(",".join(settings.corpus))):
        raise FlagError(f"{output}: is both input and output")
    if not atomic.is_written_into(output):
        atomic.make_folder(output.parent)  # before a large corpus is counted
    counts = show.count_words(settings.corpus, settings.form, rules=Rules.published(lower_case=settings.do_lower_case))
    trained = train(counts, size=settings.size, unused=settings.unused, min_frequency=settings.min_frequency)
    if len(trained.tokens) < settings.size:
        log.warning("%d pieces, fewer than --size=%d: the corpus yields no more", len(trained.tokens), settings.size)
    vocabulary = Vocabulary(trained.tokens, path=output)
    fertility = fertility_of(counts, WordPieceTokenizer(vocabulary, lower_case=settings.do_lower_case))
    with contextlib.nullcontext() if atomic.is_written_into(output) else lock.writing_file(output):
        _output(settings)  # another command may have written it meanwhile
        atomic.write_text(output, vocabulary.to_text(), follows=True)
    return Made(output, vocabulary, trained, fertility)


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
    return [PAD, *(f"[unused{number}]" for number in range(unused)), UNK, CLS, SEP, MASK]


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


def _output(settings: MakeSettings) -> Path:
    path = Path("/dev/stdout" if settings.output == PIPE else settings.output)
    run_layout.refuse_taken_name(path)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; name a file in it, as {path / 'vocab.txt'}")
    if os.path.lexists(path) and not settings.overwrite and not atomic.is_written_into(path):
        raise OutputError(f"{path}: already exists; name another --output, or add --overwrite")
    return path


def _lines(made: Made) -> Iterator[str]:
    left_out = [repr(c) for c, _ in made.trained.left_out.most_common()]
    yield f"{made.output}: {len(made.vocabulary):,} pieces, {counted(made.trained.characters, 'character')}"
    yield f"sha256 of the pieces {made.vocabulary.fingerprint}"
    if left_out:
        yield f"characters that are too rare, whose words become [UNK]: {show.shortened(left_out)}"
    yield ""
    yield from show.fertility_lines({"corpus": made.fertility})


def _print(call: Call) -> None:
    print(make(call.settings), end="")


COMMAND = Command(
    "builds a WordPiece vocabulary from text files, patterns, or - for a pipe",
    MakeSettings,
    _print,
    example="python -m bert_tf vocabulary make 'texts/*.txt' --output=vocab.txt --size=30000",
    first=("output", "size", "do_lower_case", "min_frequency", "input_format"),
)
