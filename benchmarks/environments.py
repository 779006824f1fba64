"""How each library's worker is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import PROJECT
from benchmarks.comparisons import OTHER, OWN, PEAK, PEERS
from benchmarks.workers import WorkerError

PEER_FOLDER = Path(__file__).resolve().parent / "peers"

PEER_SCRIPTS = {
    "transformers": "transformers_trainer.py",
    "keras_hub": "keras_hub_classifier.py",
    "model_garden": "model_garden.py",
}

_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


class Environments:
    def __init__(self, commands: Mapping[str, tuple[str, ...]], missing: Mapping[str, str]) -> None:
        """`commands` start a worker, to which its workload's path is appended; `missing` says why a library has none."""
        self._commands = commands
        self.missing = missing

    @classmethod
    def found(
        cls, pythons: Mapping[str, str], *, peers: bool, other: str | None = None, project: Path = PROJECT
    ) -> Environments:
        """Finds interpreters of peers, by default `.peers/NAME/bin/python`, and of another environment of this package."""
        commands: dict[str, tuple[str, ...]] = {
            OWN: (sys.executable, "-m", "benchmarks.worker"),
            PEAK: (sys.executable, "-m", "benchmarks.matmul_peak"),
        }
        missing = {}
        if other is None:
            missing[OTHER] = "--other_python was not given"
        else:
            commands[OTHER] = (other, "-m", "benchmarks.worker")
        for name in PEERS:
            python = Path(pythons.get(name, project / ".peers" / name / "bin" / "python"))
            if not peers:
                missing[name] = "--peers was not given"
            elif not os.access(python, os.X_OK):
                shown = python.relative_to(project) if python.is_relative_to(project) else python
                missing[name] = f"no {shown}; `make benchmark-env` makes it"
            else:
                commands[name] = (str(python), str(PEER_FOLDER / PEER_SCRIPTS[name]))
        return cls(commands, missing)

    def command(self, library: str, workload: Path) -> tuple[str, ...]:
        if library not in self._commands:
            raise WorkerError(self.missing[library])
        return (*self._commands[library], str(workload))

    def python(self, library: str) -> str:
        return self._commands[library][0]


def variables(library: str, threads: int) -> dict[str, str]:
    """Returns a worker's environment: ours, quiet, limited to `threads`; only our worker finds this package.

    Bytecode is kept, as pip has kept the peers': the first worker compiles a clone, not each one.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, **dict.fromkeys(_THREADS, str(threads))}
    quiet.pop("PYTHONDONTWRITEBYTECODE", None)
    if library in PEERS:
        return quiet
    return {**quiet, "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))}
