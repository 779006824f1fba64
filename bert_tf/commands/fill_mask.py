"""The fill-mask command: predicts words for [MASK] in a text or the texts of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import help_of
from bert_tf.commands.batch_flags import VERBOSITY, Settings, parse_with_name
from bert_tf.jobs.fill_mask_config import SETTINGS, FillMaskConfig, configured

if TYPE_CHECKING:
    from bert_tf.filling.word_filler import Filled

FLAGS = (*SETTINGS, VERBOSITY)


def main(argv: Sequence[str]) -> int:
    return run_command(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped; the same command goes on where it was; pipes start anew",
    )


def parse(argv: Sequence[str]) -> Settings[FillMaskConfig]:
    return parse_with_name(argv, FLAGS, configured, kinds="a run, a checkpoint or a Hugging Face folder")


def help_text() -> str:
    example = 'python -m bert_tf fill-mask out/pretrained --text="Paris is the [MASK] of France."'
    return help_of(f"Fills in masked words (docs/fill_mask.md): {example}", rows=FLAGS)


def _run(settings: Settings[FillMaskConfig]) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.fill_mask import fill_mask  # TensorFlow waits until it is needed: --help is quick

    found = fill_mask(settings.config, environment=os.environ)
    sys.stdout.writelines(f"{line}\n" for line in _lines(found))
    return 0


def _lines(found: Iterable[Filled]) -> Iterator[str]:
    for start, end, words in found:
        yield f"characters {start} to {end}"
        for piece, probability in words:
            yield f"  {probability:.4f}  {piece}"
