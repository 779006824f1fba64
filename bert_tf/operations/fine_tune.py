"""Fine-tune: trains, evaluates and predicts on a labelled text task; `run_classifier.py` and `bert_tf.fine_tune`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.errors import DataError, FlagError
from bert_tf.extension import Driven, Driver
from bert_tf.io import progress
from bert_tf.io.log_form import log
from bert_tf.library.keywords import takes
from bert_tf.operations.command import STOPPED, Call, Command
from bert_tf.profiling.wall_clock import WALL
from bert_tf.settings import Setting, settings_of
from bert_tf.training import recipes
from bert_tf.training.run_spec import DRIVERS, FINE_TUNE, SECTIONS, SETTINGS, Program, RunSpec, configured
from bert_tf.training.settings import ActionSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.tasks.base import Task
    from bert_tf.training.fine_tune import FineTuned

Sections = Mapping[str, Sequence[Setting]]

_ACTIONS = frozenset(row.name for row in settings_of(ActionSettings))

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


@takes(row for row in SETTINGS if row.name != "task_name")
def fine_tune(
    task: str | Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Any:  # see __init__.pyi
    """Trains a model and evaluates it if there is evaluation data; as `python -m bert_tf fine-tune`.

    The folder receives the command's files, `report.html` included. Repeating the call resumes a stopped training.
    Threads take turns; Ctrl-C reaches only the main thread.

    Args:
      task: a name such as MRPC, or an object such as a `SentenceTask`.
      output_dir: for checkpoints and results; by default out/TASK.
      **settings: the command's flags, by name: `num_train_epochs=3`, `learning_rate=2e-5`,
        `init_checkpoint="uncased_L-12_H-768_A-12"`.

    Returns:
      The trained model, the best one if the run was evaluated during training. With a setting that asks for several runs,
      all of them.

    Raises:
      BertError: invalid settings or input, such as an unknown setting; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    task_object = None if task is None or isinstance(task, str) else _checked(task)
    values = {**settings, "output_dir": output_dir}
    if task_object is not None and not _ACTIONS & values.keys():
        needs_dev = all(driver.needs_dev for name, driver in DRIVERS.items() if values.get(name) is not None)
        values.update(do_train=True, do_eval=not needs_dev or _has_dev(task_object))
    if isinstance(task, str):
        values["task_name"] = task
    config = configured(task_object, **values)
    for name, driver in config.drivers.items():
        return _several_runs(config, name, driver, task_object)
    trained = train(config, task_object)
    from bert_tf.library.loading import load

    return load(trained.output_dir, task=trained.run.task, data_dir=trained.run.data.data_dir)


def train(config: RunSpec, task: Task | None = None) -> FineTuned:
    """Trains one run in this process; raises KeyboardInterrupt if it was stopped."""
    for name, driver in config.drivers.items():
        raise FlagError(f"{name}: make one call per {driver.run}, each with its own output_dir")
    from bert_tf.training import fine_tune as job

    with job.TURN:
        WALL.restart()
        trained = job.fine_tune(config, environment=os.environ, task=task)
    if trained.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped at step {trained.step}; the same call continues there")
    progress.say(f"the run is in {trained.output_dir}")
    return trained


def _several_runs(config: RunSpec, name: str, driver: Driver, task: Task | None) -> Any:
    from bert_tf.training import fine_tune as job

    with job.TURN:
        WALL.restart()
        driven: Driven = extension.load(driver.function)(config, environment=os.environ, task=task)
    if driven.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped after {driven.runs} {name}; the same call continues there")
    progress.say(driven.where)
    return driven.result


def _checked(task: Task) -> Task:
    if not hasattr(task, "family"):
        kind = type(task).__name__
        raise FlagError(f"task is a {kind}: give a name, as MRPC, or a task; rows in memory are SentenceTask(train=rows)")
    from bert_tf.tasks import families

    if not families.is_known(task.family.kind):  # else the trained model could not be loaded
        raise FlagError(
            f"{task.name}: no family of the kind {task.family.kind!r} is known; register it (tasks.families.register)"
        )
    return task


def _has_dev(task: Task) -> bool:
    from bert_tf.tasks.base import DEV

    try:
        return bool(task.splits("", DEV))
    except DataError:
        return False


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
        defaults=lambda: {**dict.fromkeys(recipes.names(program), "by recipe"), **(defaults or {})},
        recipe=recipes.told(program),
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
