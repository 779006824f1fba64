"""Models on one trunk: `predict` and `serve` with all of them at once, beside one after the other.

    python -m benchmarks.several_models --layers=6 --hidden_size=384 --models=10 --rows=1000

Weights and texts are random, of pairs with 19 to 59 word pieces; speed does not depend on their values. Prints for models that
differ in two upper layers, and for those that differ in heads alone: rows a second that all models have answered, without the
start of a process; CPU seconds of the commands; peak memory of their processes; whether the predictions are the same bytes.
Then predictions a second of a service that clients ask, one row a request, and the memory of its worker. All models at once
are measured before, amid and after the others, since a machine's speed may change.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.io import documents

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_APART = {"two upper layers and heads": 2, "heads": 0}
_WORDS = (8, 29)  # of a text
_HEAD_SIZE, _LENGTH, _VOCABULARY = 64, 64, 30_522
_TOOK = re.compile(r"\d+ rows in ([\d.]+) s")
_READY = re.compile(r"http://127\.0\.0\.1:(?P<port>\d+)(?s:.*)worker ready, (?P<memory>\d+) MB(?s:.*)serving ")
_CLIENTS = 31  # prime to the number of models
_OF_SERVICES = ("apart", "models of the service", "predictions/s", "MB")
_HEADER = (
    "apart",
    "rows/s at once",
    "one by one",
    "times",
    "CPU s at once",
    "one by one",
    "MB at once",
    "one by one",
    "same bytes",
)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A command."""

    computing_s: float
    cpu_s: float
    peak_mb: float


def main(arguments: Sequence[str]) -> None:
    asked = parsed(arguments)
    sys.stdout.write(_line(_HEADER) + _line(["---"] * len(_HEADER)))
    services = [_line(_OF_SERVICES), _line(["---"] * len(_OF_SERVICES))]
    for name, apart in _APART.items():
        with tempfile.TemporaryDirectory() as folder:
            runs = written(Path(folder), asked, apart)
            sys.stdout.write(_line([name, *compared(Path(folder), asked.rows, runs)]))
            sys.stdout.flush()
            services += [_line([name, *cells]) for cells in served(Path(folder), runs, asked.seconds)]
    sys.stdout.write("\n" + "".join(services))


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.several_models", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden_size", type=int, default=384)
    parser.add_argument("--seconds", type=int, default=20, help="of each measurement of a service")
    return parser.parse_args(arguments)


def written(folder: Path, asked: argparse.Namespace, apart: int) -> list[Path]:
    """Runs that differ in some upper layers, and a file of rows."""
    sizes = asked.hidden_size, asked.layers, asked.hidden_size // _HEAD_SIZE, 4 * asked.hidden_size
    config = BertConfig(_VOCABULARY, *sizes)
    write_rows(folder / "rows.tsv", asked.rows)
    runs = [folder / f"model-{number}" for number in range(asked.models)]
    for number, run in enumerate(runs):
        write_run(run, config, number, first_own=asked.layers - apart)
    return runs


def compared(folder: Path, rows: int, runs: Sequence[Path]) -> list[str]:
    """Figures of `predict`."""
    at_once, one_by_one = [predicted(runs, folder, "all.tsv")], []
    for number, run in enumerate(runs, 1):
        one_by_one.append(predicted([run], folder, f"alone-{run.name}.tsv"))
        if number in (len(runs) // 2, len(runs)):
            at_once.append(predicted(runs, folder, f"all-{number}.tsv"))
    same = all((folder / f"all-{run.name}.tsv").read_bytes() == (folder / f"alone-{run.name}.tsv").read_bytes() for run in runs)
    rates = [rows / mean(one.computing_s for one in at_once), rows / sum(one.computing_s for one in one_by_one)]
    cpu = [mean(one.cpu_s for one in at_once), sum(one.cpu_s for one in one_by_one)]
    memory = [mean(one.peak_mb for one in at_once), sum(one.peak_mb for one in one_by_one)]
    figures = [*rates, rates[0] / rates[1], *cpu, *memory]
    return [*(f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in figures), "yes" if same else "no"]


def write_rows(path: Path, number: int) -> None:
    random = np.random.default_rng(0)
    lines = ["#1 String\t#2 String"]
    for _ in range(number):
        first, second = (
            " ".join(f"w{word}" for word in random.integers(_VOCABULARY - len(_SPECIAL), size=random.integers(*_WORDS)))
            for _ in range(2)
        )
        lines.append(f"{first}\t{second}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_run(folder: Path, config: BertConfig, number: int, *, first_own: int) -> None:
    """Writes a run of MRPC whose layers from `first_own` on, pooler and head are its own."""
    folder.mkdir()
    words = [*_SPECIAL, *(f"w{word}" for word in range(_VOCABULARY - len(_SPECIAL)))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "bert_config.json").write_text(config.to_json(), encoding="utf-8")
    record = {"task_name": "MRPC", "kind": "classification", "labels": ["0", "1"]}
    trained = {"training": {**record, "max_seq_length": _LENGTH, "do_lower_case": True}}
    (folder / "run_config.json").write_text(documents.to_json(trained), encoding="utf-8")
    shapes = {**encoder_shapes(config), "output_weights": (2, config.hidden_size), "output_bias": (2,)}
    entries = {}
    for place, (name, shape) in enumerate(sorted(shapes.items())):
        layer = re.search(r"/layer_(\d+)/", name)
        is_own = int(layer[1]) >= first_own if layer else "embeddings" not in name
        random = np.random.default_rng([place, number + 1 if is_own else 0])
        entries[name] = random.normal(float(name.endswith("gamma")), 0.02, shape).astype(np.float32)
    write_checkpoint(folder / "bert_model.ckpt", entries)


def predicted(runs: Sequence[Path], folder: Path, output: str) -> Measured:
    """Predicts the rows with some runs, in a command of its own."""
    names = ",".join(map(str, runs))
    command = ["predict", f"--checkpoint={names}", f"--input={folder / 'rows.tsv'}", f"--output={folder / output}"]
    with (folder / "log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, "-m", "bert_tf", *command], stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        text = log.read()
    if process.returncode:
        raise RuntimeError(text)
    return Measured(sum(map(float, _TOOK.findall(text))), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def served(folder: Path, runs: Sequence[Path], seconds: int) -> Iterator[list[str]]:
    """Figures of services: of one model, of all with a request for each, and with requests for all."""
    lines = (folder / "rows.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [documents.to_json({"rows": [line.split("\t")]}).encode() for line in lines]
    with service(folder / "log", runs[:1]) as (port, memory):
        yield ["one", f"{answers(port, ['/predict'], rows, seconds):.0f}", memory]
    with service(folder / "log", runs) as (port, memory):
        paths = [f"/predict/{run.name}" for run in runs]
        yield [f"{len(runs)}, asked one by one", f"{answers(port, paths, rows, seconds):.0f}", memory]
        yield [f"{len(runs)}, asked at once", f"{len(runs) * answers(port, ['/predict'], rows, seconds):.0f}", memory]


@contextlib.contextmanager
def service(log: Path, runs: Sequence[Path]) -> Iterator[tuple[int, str]]:
    """A service that is ready: its port, and MB of its worker."""
    command = [sys.executable, "-m", "bert_tf", "serve", *map(str, runs), "--port=0"]
    with log.open("w", encoding="utf-8") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            while not (ready := _READY.search(text := log.read_text(encoding="utf-8"))):
                if process.poll() is not None:
                    raise RuntimeError(text)
                time.sleep(0.2)
            yield int(ready["port"]), ready["memory"]
        finally:
            process.terminate()


def answers(port: int, paths: Sequence[str], rows: Sequence[bytes], seconds: int) -> float:
    """Answered requests a second; clients ask the paths in turn."""
    end = time.monotonic() + seconds

    def ask(client: int) -> int:
        answered = 0
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection):
            while time.monotonic() < end:
                number = answered * _CLIENTS + client
                connection.request("POST", paths[number % len(paths)], rows[number % len(rows)])
                answer = connection.getresponse()
                if answer.status != 200:
                    raise RuntimeError(answer.read().decode())
                answer.read()
                answered += 1
        return answered

    with concurrent.futures.ThreadPoolExecutor(_CLIENTS) as pool:
        return sum(pool.map(ask, range(_CLIENTS))) / seconds


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main(sys.argv[1:])
