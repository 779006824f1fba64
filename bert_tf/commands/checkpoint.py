"""The checkpoint command: inspects, compares, averages, renames and converts checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import documents
from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, action_of, by_name, help_line, read_with_words
from bert_tf.commands.batch_flags import VERBOSITY
from bert_tf.errors import FlagError
from bert_tf.jobs.checkpoint_settings import SETTINGS

_TEXT, _JSON = "text", "json"
FORMAT = Flag("format", str, _TEXT, f"{_TEXT} or {_JSON}", None, (_TEXT, _JSON))

Values = Mapping[str, Any]


class Done(NamedTuple):
    """Printed text and exit status of an action."""

    text: str = ""
    status: int = 0


class Action(NamedTuple):
    """`python -m bert_tf checkpoint NAME CHECKPOINTS [FLAGS]`."""

    checkpoints: str
    most: int | None  # checkpoints; None for any number
    help: str
    flags: tuple[Flag, ...]
    run: Callable[[Sequence[str], Values], Done]


def main(argv: Sequence[str]) -> int:
    """Returns the exit status, see `ending.run_command`; 1 if `diff` finds a difference."""
    return run_command(lambda: _run(argv), help_text=help_text, stopped="stopped; nothing was written")


def help_text() -> str:
    lines = [
        "Looks into checkpoints, compares, averages and converts them (docs/checkpoints.md).",
        "A CHECKPOINT is a prefix, a run (for its best or newest) or a Hugging Face folder.",
    ]
    for name, action in ACTIONS.items():
        usage = " ".join(("python -m bert_tf checkpoint", name, action.checkpoints))
        lines += ["", f"{usage}: {action.help}", *map(help_line, action.flags)]
    return "\n".join(lines) + "\n"


def _run(argv: Sequence[str]) -> int:
    name = action_of(argv, ACTIONS)
    action = ACTIONS[name]
    checkpoints, parsed = read_with_words(argv[1:], action.flags)
    if len(checkpoints) != action.most and (action.most is not None or not checkpoints):
        wanted = action.checkpoints
        raise FlagError(
            f"checkpoint {name}: {len(checkpoints)} checkpoints given, {wanted} wanted; flags are written --name=value"
        )
    values = by_name(parsed, action.flags)
    setup_logging(values.get(VERBOSITY.name, 0))
    done = action.run(checkpoints, values)
    print(done.text, end="")
    return done.status


# TensorFlow, and what imports it, waits until it is needed: --help is quick.
def _inspect(checkpoints: Sequence[str], values: Values) -> Done:
    from bert_tf.jobs import checkpoint_inspect

    found = checkpoint_inspect.inspect(checkpoints[0])
    return Done(_as_json(checkpoint_inspect.as_structure(found)) if values[FORMAT.name] == _JSON else str(found))


def _diff(checkpoints: Sequence[str], values: Values) -> Done:
    from bert_tf.jobs import checkpoint_diff

    found = checkpoint_diff.diff(*checkpoints)
    as_json = values[FORMAT.name] == _JSON
    text = _as_json(checkpoint_diff.as_structure(found)) if as_json else checkpoint_diff.text(found, values["top"])
    return Done(text, 0 if found.same else 1)


def _average(checkpoints: Sequence[str], values: Values) -> Done:
    from bert_tf.jobs import checkpoint_average

    done = checkpoint_average.average(checkpoints, values)
    return Done("".join(f"{checkpoint}\n" for checkpoint in done.checkpoints))


def _rewrite(action: str) -> Callable[[Sequence[str], Values], Done]:
    def run(checkpoints: Sequence[str], values: Values) -> Done:
        from bert_tf.jobs import checkpoint_rewrite

        return Done(str(getattr(checkpoint_rewrite, action)(checkpoints[0], values)))

    return run


def _as_json(structure: Mapping[str, Any]) -> str:
    return documents.to_json(structure, indent=2) + "\n"


_FLAGS = {action: (*rows, FORMAT if action in ("inspect", "diff") else VERBOSITY) for action, rows in SETTINGS.items()}
ACTIONS: Mapping[str, Action] = {
    "inspect": Action(
        "CHECKPOINT",
        1,
        "its variables with shape, type, norm and what is not finite; sums by layer",
        _FLAGS["inspect"],
        _inspect,
    ),
    "diff": Action(
        "A B",
        2,
        "how far each layer moved, and what one has alone; status 0 where they are the same, else 1",
        _FLAGS["diff"],
        _diff,
    ),
    "average": Action(
        "A B ...",
        None,
        "their mean as a model, or that of the last or best of a run",
        _FLAGS["average"],
        _average,
    ),
    "strip": Action(
        "CHECKPOINT",
        1,
        "without the optimizer's moments and the moving average",
        _FLAGS["strip"],
        _rewrite("strip"),
    ),
    "convert": Action(
        "CHECKPOINT",
        1,
        "in another layout, with all that belongs to it",
        _FLAGS["convert"],
        _rewrite("convert"),
    ),
    "rename": Action("CHECKPOINT", 1, "with other names", _FLAGS["rename"], _rewrite("rename")),
}
