"""The vocabulary command: builds one from a corpus, adds words to a model, and inspects one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, action_of, by_name, help_line, read_with_words
from bert_tf.commands.batch_flags import VERBOSITY
from bert_tf.errors import FlagError
from bert_tf.jobs.vocabulary_settings import SETTINGS
from bert_tf.text_table import counted

Values = Mapping[str, Any]


class Action(NamedTuple):
    """`python -m bert_tf vocabulary NAME WORDS [FLAGS]`."""

    words: str
    fewest: int
    most: int | None  # words; None for any number
    help: str
    flags: tuple[Flag, ...]
    run: Callable[[Sequence[str], Values], object]


def main(argv: Sequence[str]) -> int:
    return run_command(lambda: _run(argv), help_text=help_text, stopped="stopped; nothing was written")


def help_text() -> str:
    lines = ["Makes, extends and shows vocabularies of word pieces (docs/vocabulary.md)."]
    for name, action in ACTIONS.items():
        usage = " ".join(("python -m bert_tf vocabulary", name, action.words))
        lines += ["", f"{usage}: {action.help}", *map(help_line, action.flags)]
    return "\n".join(lines) + "\n"


def parse(argv: Sequence[str]) -> tuple[Action, list[str], Values]:
    name = action_of(argv, ACTIONS)
    action = ACTIONS[name]
    words, parsed = read_with_words(argv[1:], action.flags)
    if len(words) < action.fewest or (action.most is not None and len(words) > action.most):
        raise FlagError(
            f"vocabulary {name}: {counted(len(words), 'name')} given, {action.words} wanted; flags are written --name=value"
        )
    return action, words, by_name(parsed, action.flags)


def _run(argv: Sequence[str]) -> int:
    action, words, values = parse(argv)
    setup_logging(values[VERBOSITY.name])
    print(action.run(words, values), end="")
    return 0


# What imports TensorFlow or counts a corpus waits until it is needed: --help is quick.
def _make(corpus: Sequence[str], values: Values) -> object:
    from bert_tf.jobs import vocabulary_make

    return vocabulary_make.make(corpus, values)


def _extend(checkpoints: Sequence[str], values: Values) -> object:
    from bert_tf.jobs import vocabulary_extend

    return vocabulary_extend.extend(next(iter(checkpoints), None), values, environment=os.environ)


def _show(names: Sequence[str], values: Values) -> object:
    from bert_tf.jobs import vocabulary_show

    return vocabulary_show.show(names[0], values)


_FLAGS = {action: (*rows, VERBOSITY) for action, rows in SETTINGS.items()}
ACTIONS: Mapping[str, Action] = {
    "make": Action("CORPUS ...", 1, None, "the word pieces of text, as files, patterns or - for a pipe", _FLAGS["make"], _make),
    "extend": Action(
        "[CHECKPOINT]",
        0,
        1,
        "a model with more words, else the default one; each begins as the mean of its pieces",
        _FLAGS["extend"],
        _extend,
    ),
    "show": Action(
        "VOCAB", 1, 1, "what is in a vocab.txt, or in that of a folder, and how well it fits a text", _FLAGS["show"], _show
    ),
}
