"""Precision of label errors, and recall of near duplicates, that `data audit` finds where they were planted.

    python -m benchmarks.label_errors TABLE --output=DIR [--noise_seed=1] [--peer=PYTHON] [FLAGS OF THE RUN]

TABLE is tab-separated, with a header; its columns are text and label. A tenth of its first 8,000 rows get another label. With
flags a run with --folds=5 makes the predictions. PYTHON has cleanlab installed, for the same probabilities. In a copy of
the table a row in 40 is an earlier one with a small change.
"""

from __future__ import annotations

import argparse
import csv
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bert_tf

_CLEANLAB = """
import csv, sys, numpy
from cleanlab.filter import find_label_issues
lines = list(csv.DictReader(open(sys.argv[1], newline=""), delimiter="\\t"))
names = [name for name in lines[0] if name.startswith("probability_")]
labels = numpy.array([names.index("probability_" + line["true_label"]) for line in lines])
probabilities = numpy.array([[float(line[name]) for name in names] for line in lines])
probabilities /= probabilities.sum(axis=1, keepdims=True)
options = {"filter_by": "confident_learning", "return_indices_ranked_by": "self_confidence"}
print(*(lines[number]["id"] for number in find_label_issues(labels, probabilities, **options)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("table", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--noise_seed", type=int, default=1)
    parser.add_argument("--peer")
    arguments, flags = parser.parse_known_args()
    lines = arguments.table.read_text(encoding="utf-8").splitlines()[1:8001]
    rows = [(text, label) for text, label, *_ in (line.split("\t") for line in lines)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    _label_errors(rows, arguments, flags)
    _near_duplicates(rows, arguments)


def _label_errors(rows: list[tuple[str, str]], arguments: argparse.Namespace, flags: list[str]) -> None:
    rng = random.Random(arguments.noise_seed)  # noqa: S311  (chooses rows)
    flipped = set(rng.sample(range(len(rows)), len(rows) // 10))
    names = sorted({label for _, label in rows})
    others = {name: [other for other in names if other != name] for name in names}
    noisy = [(text, rng.choice(others[label]) if n in flipped else label) for n, (text, label) in enumerate(rows)]
    table, run = _write(arguments.output / "noisy.csv", noisy), arguments.output / "run"
    if flags:
        folds = f"--task_name=custom --id_column=id --do_train --do_eval --folds=5 --folds_only --output_dir={run}".split()
        subprocess.run([sys.executable, "run_classifier.py", f"--train_file={table}", *folds, *flags], check=True)
    ranked = _audit(table, arguments.output, predictions=str(run) if flags else None)
    ids = {f"n{n}" for n in flipped}
    errors = [one.row.example.guid for one in ranked if one.problem == "label_error"]
    _report("data audit", errors, ids)
    if arguments.peer and flags:
        command = [arguments.peer, "-c", _CLEANLAB, str(run / "out_of_fold.tsv")]
        _report("cleanlab", subprocess.check_output(command, text=True).split(), ids)


def _report(name: str, errors: Sequence[str], flipped: set[str]) -> None:
    first = errors[: len(flipped)]
    precision = sum(one in flipped for one in first) / max(len(first), 1)
    sys.stdout.write(f"{name}: {len(errors)} label errors; of the first {len(first)}, {precision:.4f} were planted\n")


def _near_duplicates(rows: list[tuple[str, str]], arguments: argparse.Namespace) -> None:
    rng = random.Random(arguments.noise_seed)  # noqa: S311  (chooses rows and words)
    words = sorted({word for text, _ in rows for word in text.split() if word.isalpha()})
    long = [n for n, (text, _) in enumerate(rows) if sum(word.isalpha() for word in text.split()) >= 5]
    sources = rng.sample(long, len(rows) // 40)
    dropped = set(rng.sample(sorted({*range(len(rows))} - {*sources}), len(sources)))
    kept = [row for n, row in enumerate(rows) if n not in dropped]
    changes = _changes(rng, words)
    planted = [(" ".join(changes[n % len(changes)](rows[one][0].split())), rows[one][1]) for n, one in enumerate(sources)]
    table = _write(arguments.output / "near.csv", [*kept, *planted])
    pairs = ("duplicate", "contradiction", "near_duplicate")
    reported = {one.row.example.guid for one in _audit(table, arguments.output) if one.problem in pairs}
    count = sum(f"n{n}" in reported for n in range(len(kept), len(kept) + len(planted)))
    sys.stdout.write(f"near duplicates: {count} of {len(planted)} planted; {len(reported) - count} other rows\n")


def _changes(rng: random.Random, words: Sequence[str]) -> list[Callable[[list[str]], list[str]]]:
    def at(text: list[str], replace: Callable[[list[str]], list[str]], size: int = 1) -> list[str]:
        usable = [len(word) > 1 and word.isalpha() for word in text]
        places = [n for n in range(len(text) - size + 1) if all(usable[n : n + size])]
        place = rng.choice(places or [0])
        return [*text[:place], *replace(text[place : place + size]), *text[place + size :]]

    return [
        lambda text: at(text, lambda part: [part[0][1::-1] + part[0][2:]]),  # two letters swapped
        lambda text: at(text, lambda part: part[::-1], 2),  # two words swapped
        lambda text: at(text, lambda part: [*part, rng.choice(words)]),  # a word added
        lambda text: at(text, lambda part: [part[0].upper(), "!"]),  # case and punctuation
        lambda text: at(text, lambda _: [rng.choice(words)]),  # a word replaced
    ]


def _audit(table: Path, output: Path, **settings: str | None) -> Sequence[Any]:
    folder = output / "audit"
    return bert_tf.audit_data(task_name="custom", train_file=table, id_column="id", output_dir=folder, **settings).findings


def _write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text", "label"), *((f"n{n}", *row) for n, row in enumerate(rows))])
    return path


if __name__ == "__main__":
    main()
