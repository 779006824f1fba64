"""Fine-tune: trains, evaluates and predicts on a labelled text task, as `run_classifier.py`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from bert_tf import extension
from bert_tf.errors import FlagError
from bert_tf.extension import Driven
from bert_tf.io.log_form import log
from bert_tf.operations.command import STOPPED, Call, Command
from bert_tf.settings import Setting
from bert_tf.training.run_spec import FINE_TUNE, SECTIONS, Program, RunSpec, configured

Sections = Mapping[str, Sequence[Setting]]

# Flags of the published script that command lines may hold; there is no TPU here.
TPU = (
    Setting("use_tpu", bool, False, ""),
    Setting("tpu_name", str, None, "", may_be_empty=True),
    Setting("tpu_zone", str, None, "", may_be_empty=True),
    Setting("gcp_project", str, None, "", may_be_empty=True),
    Setting("master", str, None, "", may_be_empty=True),
    Setting("num_tpu_cores", int, 8, ""),
    Setting("iterations_per_loop", int, 1000, ""),
)
_ELSEWHERE = ("use_tpu", "master")  # would compute on another machine; --tpu_name has no effect without the first
_ABBREVIATED = re.compile(r"^(--?(?:no)?)do_lower(?==|$)")


def command(
    program: Program,
    title: str,
    example: str,
    first: str,
    note: str,
    sections: Sections,
    make: Callable[..., RunSpec],
    defaults: Mapping[str, str] | None = None,
) -> Command:
    """Returns a command that trains; `first` names the flags to start with."""
    published = ", ".join(f"--{row.name}" for row in TPU)
    return Command(
        title,
        None,
        run,
        example,
        tuple(first.split()),
        sections=sections,
        make=make,
        own=TPU,
        note=f"{note}\n\nOf the published script, without effect, since there is no TPU here:\n  {published}",
        defaults=lambda: {**dict.fromkeys(program.of_recipes, "by recipe"), **(defaults or {})},
        recipe=program.told_recipe(),
        rewrite=rewrite,
        stopped="stopped at once; the same command continues from the last checkpoint",
        log=lambda config: (config.output.verbosity, config.output.log_form),
        reports_to=lambda config: config.output.folder,
    )


def run(call: Call) -> int:
    for name in _ELSEWHERE:
        if call.own[name]:
            raise FlagError(f"--{name}: there is no TPU here, only GPUs and the CPU of this machine; leave the flag out")
    idle = [f"--{row.name}" for row in TPU if row.name in call.given]
    if idle:
        log.warning("there is no TPU here, so these have no effect: %s", ", ".join(idle))
    for driver in call.settings.drivers.values():
        driven: Driven = extension.load(driver.function)(call.settings, environment=os.environ, task=None)
        if driven.lines:
            print("\n".join(driven.lines))
        return STOPPED if driven.stopped_by else 0
    from bert_tf.training import fine_tune

    return STOPPED if fine_tune.fine_tune(call.settings, environment=os.environ).stopped_by else 0


def rewrite(argv: Sequence[str]) -> list[str]:
    """Replaces --train_batch_size=auto with --fit_memory, which keeps the batch size, and expands --do_lower.

    The published README writes --do_lower; other abbreviations are rejected, since they may be mistakes.
    """
    words = [_ABBREVIATED.sub(r"\1do_lower_case", word) for word in argv]
    for index, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if name != "train_batch_size" or not word.startswith("-"):
            continue
        if equals and value == "auto":
            words[index] = "--fit_memory"
        elif not equals and words[index + 1 : index + 2] == ["auto"]:
            words[index : index + 2] = ["--fit_memory"]
    return words


COMMAND = command(
    FINE_TUNE,
    "Fine-tunes BERT on labelled texts, evaluates and predicts (docs/commands.md).",
    "python -m bert_tf fine-tune --task_name=custom --train_file=train.csv --dev_file=dev.csv --output_dir=out/mine",
    "task_name train_file dev_file text_a label_column",
    "--task_name=XNLI measures each language and their mean; the published script's XNLI is XNLI-zh here.",
    SECTIONS,
    configured,
)
