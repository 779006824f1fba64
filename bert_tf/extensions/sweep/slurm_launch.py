"""Runs a sweep as a Slurm array: a leader for each element, which starts when a node is free for it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf.errors import FlagError
from bert_tf.io import atomic
from bert_tf.io.log_form import log

SCRIPT = "sweep.sbatch"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

# Slurm does not requeue at a time limit: the script does. scancel signals all processes; it kills the rest when the shell ends.
_TEMPLATE = """#!/bin/bash
# sbatch {path}
#SBATCH --job-name=sweep --array=1-{nodes} --nodes=1 --requeue --open-mode=append
#SBATCH --output={log} --signal=B:USR1@120
{options}
stop_and_requeue() {{  # the runs save a checkpoint after their step
  kill -TERM "$leader"
  wait "$leader"
  status=$?
  case "$status" in
    0 | 2) exit "$status" ;;  # it has all results
    *) exec scontrol requeue "$SLURM_JOB_ID" ;;
  esac
}}
trap stop_and_requeue USR1
trap 'wait "$leader"; exit' TERM
cd {cwd} || exit
{command} &
leader=$!
wait "$leader"
"""


def submit(command: Sequence[str], folder: Path, nodes: int, options: str | None) -> str:
    """Writes a script that runs a Python command and submits it; returns sbatch's output, or the script without Slurm."""
    path = folder / SCRIPT
    text = script(command, folder, nodes, options)
    atomic.write_text(path, text)
    if shutil.which("sbatch") is None:
        log.warning("no sbatch on this machine; submit the script on another: sbatch %s", shlex.quote(str(path)))
        return text.rstrip("\n")
    done = subprocess.run(["sbatch", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]
        raise FlagError(f"--launch=slurm: {reason.removeprefix('sbatch: ')}; correct --slurm, or edit {path}")
    return done.stdout.strip()


def refuse_unwritable(folder: Path) -> None:
    """Raises FlagError for a name that would leave its line of the script."""
    if _CONTROL.search(str(folder)):
        problem = "a name with control characters cannot stand in a script of Slurm; name another folder"
        raise FlagError(f"--output_dir={str(folder)!a}: {problem}")


def script(command: Sequence[str], folder: Path, nodes: int, options: str | None) -> str:
    refuse_unwritable(folder)
    escaped = str(folder).replace("%", "%%")
    return _TEMPLATE.format(
        path=shlex.quote(str(folder / SCRIPT)),
        nodes=nodes,
        log=shlex.quote(f"{escaped}/slurm-%A_%a.txt"),
        options=f"#SBATCH {_checked(options)}\n" if options else "",
        cwd=shlex.quote(os.getcwd()),
        command=shlex.join([sys.executable, *command]),
    )


def _checked(options: str) -> str:
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise FlagError(f"--slurm={options}: {error}") from error
    if not words[:1] or not words[0].startswith("-") or not options.isprintable():
        raise FlagError(f"--slurm={options}: must be options of sbatch in one line, as --slurm='--time=12:00:00'")
    return options
