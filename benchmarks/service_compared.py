"""The service and LitServe with transformers in turns, under load from wrk; prints a Markdown table.

    python -m benchmarks.service_compared RUN DATA_DIR --peer=PYTHON
    python -m benchmarks.service_compared RUN DATA_DIR --against=--nokeep_memory

RUN was trained on MRPC, DATA_DIR has MRPC's files; the peer computes the run as `export --format=huggingface` writes it.
Servers start anew in each round; they and their clients share all cores. Answers are compared with those to each row alone.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import load, report
from benchmarks.workers import PEER_FOLDER
from bert_tf.tasks.base import DEV
from bert_tf.tasks.registry import get_task
from bert_tf.training.settings import INT8

_OWN = (sys.executable, "-m", "bert_tf")
_WAYS = {"TensorFlow": (), "OpenVINO int8": ("--engine=openvino", "--precision=int8")}
_EXPORTED = {"exported float32": "float32", "exported int8": INT8}  # served without TensorFlow
_PEER = "LitServe, transformers"
_CLIENTS = (1, 8, 64)
_START_S = 120
_WARM_S = 2
_KINDS = ("per_second", "p50_ms", "p99_ms", "memory_mb")
_FAILURES = ("wrong", "refused", "lost")
_HEAD = ("server", "clients", "answers/s", "ratio", "p50 ms", "ratio", "p99 ms", "ratio", "memory MB", "ratio")

Commands = Mapping[str, Sequence[str]]  # by name of the server
Turn = Mapping[int, Mapping[str, Any]]  # number of clients to the figures of benchmarks.load, and memory_mb


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_compared")
    parser.add_argument("run", help="folder of a run that was trained on MRPC")
    parser.add_argument("data_dir", help="folder of MRPC's files")
    other = parser.add_mutually_exclusive_group(required=True)
    other.add_argument("--peer", help="Python with benchmarks/peers/transformers_service.txt")
    other.add_argument("--against", help="flags of `serve`, as --nokeep_memory, with which the TensorFlow service is the peer")
    parser.add_argument("--peer_flags", default="", help="flags of benchmarks/peers/transformers_service.py")
    parser.add_argument("--rows", type=int, default=200, help="pairs of the dev split")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8, help="of each measurement")
    asked = parser.parse_args(arguments)
    examples = get_task("MRPC").examples(asked.data_dir, DEV)[: asked.rows]
    lines = [json.dumps({"text_a": example.text_a, "text_b": example.text_b}) for example in examples]
    with tempfile.TemporaryDirectory() as folder:
        peer, commands = _with_flags(asked) if asked.against else _with_litserve(asked, folder)
        turns: dict[str, list[Turn]] = {name: [] for name in commands}
        for _ in range(asked.rounds):
            for name, command in commands.items():
                turns[name].append(_turn(command, lines, asked.seconds, Path(folder)))
    sys.stdout.write(table(turns, peer))


def _with_flags(asked: argparse.Namespace) -> tuple[str, Commands]:
    """Name of the peer, and commands of servers by name: the TensorFlow service alone, and with the flags."""
    name, command = f"TensorFlow {asked.against}", (*_OWN, "serve", asked.run)
    return name, {"TensorFlow": command, name: (*command, *shlex.split(asked.against))}


def _with_litserve(asked: argparse.Namespace, folder: str) -> tuple[str, Commands]:
    """As `_with_flags`, of all our services and LitServe with transformers; exports the run into the folder."""

    def exported(form: str, precision: str = "float32") -> str:
        place = os.path.join(folder, f"{form}-{precision}")
        gate = (f"--gate_data={asked.data_dir}", "--max_loss_of_metric=100") if precision == INT8 else ()
        how = (f"--format={form}", f"--precision={precision}", f"--output={place}", *gate)
        subprocess.run([*_OWN, "export", asked.run, *how], check=True)
        return place

    peer = (asked.peer, os.fspath(PEER_FOLDER / "transformers_service.py"), exported("huggingface"))
    return _PEER, {
        **{name: (*_OWN, "serve", asked.run, *flags) for name, flags in _WAYS.items()},
        **{name: (*_OWN, "serve", exported("onnx", precision)) for name, precision in _EXPORTED.items()},
        _PEER: (*peer, *shlex.split(asked.peer_flags)),
    }


def table(turns: Mapping[str, Sequence[Turn]], peer: str) -> str:
    """Returns medians of rounds, their ratios to the peer's, and the sums of failures, as a Markdown table."""
    middle = {
        (name, clients, kind): statistics.median(turn[clients][kind] for turn in rounds)
        for name, rounds in turns.items()
        for clients in rounds[0]
        for kind in _KINDS
    }
    rows = []
    for clients in turns[peer][0]:
        for name, rounds in turns.items():
            cells = [name, str(clients)]
            for kind in _KINDS:
                value = middle[name, clients, kind]
                cells += [f"{value:.{0 if kind == 'memory_mb' else 1}f}", f"{value / middle[peer, clients, kind]:.2f}"]
            rates = [turn[clients]["per_second"] for turn in rounds]
            cells[2] += f" ({min(rates):.1f} to {max(rates):.1f})"
            rows.append([*cells, ", ".join(str(sum(turn[clients][kind] for turn in rounds)) for kind in _FAILURES)])
    return report.table((*_HEAD, ", ".join(_FAILURES)), rows) + "\n"


def _turn(command: Sequence[str], lines: Sequence[str], seconds: int, folder: Path) -> Turn:
    with _started(command, folder / "log.txt") as (session, url):
        rows = folder / "rows.lua"
        rows.write_text(load.as_lua(load.answered(url, lines)), encoding="ascii")
        measured = functools.partial(load.measured, url, rows, load.TOLERANCE)
        measured(max(_CLIENTS), _WARM_S)
        found = {}
        for clients in _CLIENTS:
            load.answered(url, lines[:1])  # once the requests that the clients before left behind are computed
            with concurrent.futures.ThreadPoolExecutor() as pool:
                figures, held = pool.submit(measured, clients, seconds), [memory(session)]
                while concurrent.futures.wait([figures], timeout=1).not_done:
                    held.append(memory(session))
            found[clients] = {**figures.result(), "memory_mb": max(held) / 1e6}
        return found


@contextlib.contextmanager
def _started(command: Sequence[str], log: Path) -> Iterator[tuple[int, str]]:
    """Starts a server in a session of its own; yields the session and the URL of /predict once the server is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        log.open("wb") as output,
        subprocess.Popen([*command, f"--port={port}"], stdout=output, stderr=output, start_new_session=True) as server,
    ):
        try:
            end = time.monotonic() + _START_S
            while not _is_ready(port):
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{shlex.join(command)} is not ready:\n{log.read_text(errors='replace')}")
                time.sleep(0.1)
            yield server.pid, f"http://127.0.0.1:{port}/predict"
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)  # workers that outlived it


def _is_ready(port: int) -> bool:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False


def memory(session: int) -> int:
    """Returns the bytes that a session's processes hold; pages that several of them share count once."""
    total = 0
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            if os.getsid(int(process)) == session:
                lines = Path("/proc", process, "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


if __name__ == "__main__":
    main(sys.argv[1:])
