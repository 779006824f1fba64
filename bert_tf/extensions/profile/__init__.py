"""Profile: where the time of a few training steps goes, by phase and by operation (docs/profiling.md)."""

from __future__ import annotations

import dataclasses

from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.extensions.profile.steps import StepRange
from bert_tf.settings import training_setting

FOLDER = "profile"  # in a run's folder
PHASES, OPERATIONS = f"{FOLDER}/phases.json", f"{FOLDER}/operations.json"


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
    files={(f"{FOLDER}/",): "recorded steps (docs/profiling.md)"},
)
