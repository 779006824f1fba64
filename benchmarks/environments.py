"""How the worker of each library is started."""

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
    """Commands of the workers, by library."""

    def __init__(self, commands: Mapping[str, tuple[str, ...]], missing: Mapping[str, str]) -> None:
        """Keeps what is known.

        Args:
          commands: what starts a worker; the path of its workload is put behind it.
          missing: why a library has none.
        """
        self._commands = commands
        self.missing = missing

    @classmethod
    def found(
        cls, pythons: Mapping[str, str], *, peers: bool, other: str | None = None, project: Path = PROJECT
    ) -> Environments:
        """Looks for the interpreters of peers and of another environment.

        Args:
          pythons: interpreter by library, where it is not `.peers/NAME/bin/python`.
          peers: whether peers are wanted.
          other: interpreter of another environment of this package.
          project: folder of `.peers`.
        """
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
        """Returns what starts a worker.

        Raises:
          WorkerError: the library is missing.
        """
        if library not in self._commands:
            raise WorkerError(self.missing[library])
        return (*self._commands[library], str(workload))

    def python(self, library: str) -> str:
        """Returns the interpreter of a library."""
        return self._commands[library][0]


def variables(library: str, threads: int) -> dict[str, str]:
    """Returns the environment of a library's worker: ours, quiet, with so many threads; only our own find this package.

    Bytecode is kept, as pip has kept that of the peers: a clone is compiled by its first worker, not by each.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, **dict.fromkeys(_THREADS, str(threads))}
    quiet.pop("PYTHONDONTWRITEBYTECODE", None)
    if library in PEERS:
        return quiet
    return {**quiet, "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))}
