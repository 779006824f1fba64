"""Profile: where the time of a few training steps goes, by phase and by operation (docs/profiling.md)."""

from __future__ import annotations

import dataclasses
import re

from bert_tf.errors import FlagError
from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.io.documents import LARGEST_SETTING
from bert_tf.settings import training_setting

FOLDER = "profile"  # in a run's folder
PHASES, OPERATIONS = f"{FOLDER}/phases.json", f"{FOLDER}/operations.json"
RECORDED = (
    PHASES,
    OPERATIONS,
    *(f"{FOLDER}/{name}" for name in ("chrome_trace_step*.json", "plugins/", "events.out.tfevents.*")),
)


@dataclasses.dataclass(frozen=True)
class StepRange:
    """Steps `first` to `last`, inclusive; the first step of a run is 1."""

    first: int
    last: int

    @classmethod
    def parse(cls, flag: str, text: str) -> StepRange:
        """Parses "20-30", or "20" for a single step; raises FlagError, naming the flag, for anything else."""
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", text.strip())
        if not match:
            raise FlagError(f"--{flag}={text}: expected a step or a range of steps, such as 20 or 20-30")
        first, last = int(match[1]), int(match[2] or match[1])
        if last > LARGEST_SETTING:
            raise FlagError(f"--{flag}={text}: steps count up to {LARGEST_SETTING}")
        if not 1 <= first <= last:
            raise FlagError(f"--{flag}={text}: steps count from 1, and a range must not end before it starts")
        return cls(first, last)


def _steps(text: str) -> StepRange:
    return StepRange.parse("profile_steps", text)


@dataclasses.dataclass(frozen=True)
class ProfileSettings(Settings):
    profile_steps: str | None = training_setting(
        None, "steps to profile, such as 20-30; writes profile/ and NVTX ranges (docs/profiling.md)", check=_steps
    )

    @property
    def steps(self) -> StepRange:
        return _steps(str(self.profile_steps))


EXTENSION = Extension(
    settings=ProfileSettings,
    section="Output",
    part=f"{__name__}.hook:Profiled",
    panel=f"{__name__}.panel:of_runs",
    commands={
        "profile": NewCommand(f"{__name__}.command:COMMAND", "Look at runs", "shows where the time of profiled steps went")
    },
    files={RECORDED: "recorded steps (docs/profiling.md)"},
)
