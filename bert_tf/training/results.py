"""Writes the results of a run into its folder, for people and scripts."""

from __future__ import annotations

import os
import types
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import extension, run_layout
from bert_tf.errors import FlagError
from bert_tf.extension import RunPage
from bert_tf.io import atomic, documents
from bert_tf.io.log_form import log, published, short
from bert_tf.tasks.base import Family, Task
from bert_tf.tasks.evaluation import Evaluation, label_of_f1, split_suffix, summarize

ROWS, FILE = run_layout.ROWS, "file"  # entries of a split in eval_results.json: what was measured
_REMEDIES = "train longer, weight rare classes (--class_weights=balanced), or try another --seed or --learning_rate"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file knows; the same predictions make the same bytes


def write_evaluation(
    output_dir: str | os.PathLike[str],
    evaluations: Mapping[str, Evaluation],
    *,
    step: int,
    note: str,
    more: Mapping[str, Any] = types.MappingProxyType({}),
    averages: Mapping[str, Mapping[str, Evaluation]] = types.MappingProxyType({}),
) -> dict[str, float]:
    """Writes and logs eval_results.txt (key = value, as the published script) and eval_results.json.

    Returns the values by key: eval_<metric> and eval_loss, with several splits both for their mean and for each, as
    eval_accuracy_matched; loss, equal to eval_loss; and global_step. Keys of weight averages end in their name:
    eval_accuracy_ema. The JSON file also holds intervals and tables of each split, and `more`; a metric whose interval
    cannot be computed has none. `note` is a remark on the data for readers who compare numbers.
    """
    summary = summarize(evaluations)
    results = {**{f"eval_{name}": value for name, value in summary.items()}, "loss": summary["loss"], "global_step": step}
    for kind, of_kind in averages.items():
        results.update({f"eval_{name}_{kind}": value for name, value in summarize(of_kind).items()})
    _log(results, evaluations)
    folder = Path(output_dir)
    atomic.write_text(folder / run_layout.RESULTS_TEXT, "".join(f"{key} = {results[key]}\n" for key in sorted(results)))
    every = {"": evaluations, **averages}
    splits = {
        title(split, kind): evaluation.details() for kind, of_kind in every.items() for split, evaluation in of_kind.items()
    }
    content = {**results, **more, **({"note": note} if note else {}), "splits": splits}
    atomic.write_text(folder / run_layout.RESULTS, documents.to_json(content, indent=2, sort_keys=True) + "\n")
    return results


def warn_of_other_rows(output_dir: str | os.PathLike[str], evaluations: Mapping[str, Evaluation]) -> None:
    """Warns before results of other rows are replaced, as those of the training's dev file by those of a test file."""
    try:
        earlier = documents.parse_json(documents.read_text(Path(output_dir) / run_layout.RESULTS))["splits"]
        measured = {split: (details[ROWS], details["examples"]) for split, details in earlier.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # there is none, or without digests
        return
    for split, evaluation in evaluations.items():
        rows = evaluation.more[ROWS], evaluation.examples  # the digest of rows on disk leaves their number out
        if measured.get(split, rows) != rows:
            name = earlier[split].get(FILE, f"the earlier {split}")
            instead = extension.advice("evaluate", "; python -m bert_tf evaluate measures other files beside them")
            log.warning("%s: results of other rows (%s) are replaced%s", output_dir, name, instead)


def title(split: str, average: str) -> str:
    return f"{split} ({average})" if average else split


def split_and_average(text: str) -> tuple[str, str]:
    """The inverse of `title`."""
    split, _, average = text.removesuffix(")").partition(" (")
    return split, average


def write_mistakes(output_dir: str | os.PathLike[str], mistakes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Writes wrong_examples.jsonl by split, see `Family.mistakes`; without mistakes the file is empty.

    Explanations of earlier mistakes are deleted.
    """
    (Path(output_dir) / run_layout.EXPLANATIONS).unlink(missing_ok=True)
    lines = (documents.to_json({"split": split, **mistake}) for split, of_split in mistakes.items() for mistake in of_split)
    _write_lines(Path(output_dir) / run_layout.WRONG_EXAMPLES, lines)


def write_predictions(
    output_dir: str | os.PathLike[str],
    task: Task,
    split: str,
    examples: Sequence[Any],
    predictions: Any,
    family: Family | None = None,
) -> Path:
    """Writes the files of a family for a split, and submission/<name>.tsv if GLUE's server takes it.

    `family` is that of the task with the decision rule of the model; None for the published rule.

    Returns the main file. With several splits, names carry theirs: predictions_matched.tsv. The one that the published
    script predicts, test_matched of MNLI, has its files under the published name too. Predictions are in the order of
    the E examples, see `Family.predictions`.
    """
    folder, suffix = Path(output_dir), split_suffix(split)
    published = split_suffix(task.published_name(split))
    family = family or task.family
    files = family.files(predictions, examples, suffix=suffix, published_suffix=published)
    for name, text in files.items():
        atomic.write_text(folder / name, text)
    written = folder / next(iter(files))
    log.info("predictions of %d examples are in %s", len(examples), written)
    submission = task.submission(split)
    if submission is not None:
        submission_dir = atomic.make_folder(folder / run_layout.SUBMISSION, follows=False)
        _write_lines(submission_dir / f"{submission.name}.tsv", submission.lines(family, predictions))
    return written


def zip_submissions(output_dir: str | os.PathLike[str], runs: Sequence[Path] = ()) -> Path:
    """Packs the files of `submission`, or those of `runs`, into submission.zip, without folders, as the server requires."""
    folders = runs or (Path(output_dir),)
    files = sorted(file for folder in folders for file in (folder / run_layout.SUBMISSION).glob("*.tsv"))
    if not files:
        raise FlagError(f"--submission_zip: {output_dir} holds no predictions of a GLUE task")
    target = Path(output_dir, run_layout.SUBMISSION_ZIP)
    with atomic.replacing(target, follows=False) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(file.name, _EPOCH), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    atomic.write_text(path, "".join(f"{line}\n" for line in lines))


def _log(results: Mapping[str, float], evaluations: Mapping[str, Evaluation]) -> None:
    intervals = {
        f"eval_{name}{split_suffix(split)}": f" (95 %: {low:.4f} to {high:.4f})"
        for split, evaluation in evaluations.items()
        for name, (low, high) in evaluation.intervals.items()
    }
    f1_of = {
        f"eval_f1{split_suffix(split)}": f" (of {label})"
        for split, evaluation in evaluations.items()
        if (label := label_of_f1(evaluation.more))
    }
    as_published = {key: np.float32(value) if isinstance(value, float) else value for key, value in sorted(results.items())}
    listed = ", ".join(f"{key} = {value!s}" for key, value in as_published.items())
    published.info("Saving dict for global step %d: %s", results["global_step"], listed)
    published.info("evaluation_loop marked as finished")
    log.info("***** Eval results *****")
    for key, value in as_published.items():
        published.info("  %s = %s", key, value)
        if key != "loss":  # the same as eval_loss
            shown = value if isinstance(value, int) else f"{value:.6g}"
            short.info("  %s = %s%s%s", key, shown, f1_of.get(key, ""), intervals.get(key, ""))
    for split, evaluation in evaluations.items():
        short.info("%s: %d examples", split, evaluation.examples)
        for line in evaluation.lines:
            short.info("  %s", line)
        if evaluation.collapsed:
            log.warning("%s: nothing was learned: %s; %s", split, evaluation.collapsed, _REMEDIES)


def start_page_ahead() -> None:
    """Starts what takes long in writing the report, while the last checkpoint is written."""
    for page in _pages():
        if page.prepare:
            extension.load(page.prepare)()


def write_page(folder: Path) -> None:
    """Has the report of a run written, or that of several in a folder."""
    for page in _pages():
        extension.load(page.write)(folder)


def _pages() -> Iterator[RunPage]:
    return (entry.page for entry in extension.installed().values() if entry.page is not None)
