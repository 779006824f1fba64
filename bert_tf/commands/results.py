"""What a run leaves in its output folder for people and scripts to read."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from bert_tf import atomic, documents
from bert_tf.commands import submission
from bert_tf.log_form import published, short
from bert_tf.metrics import ClassScores
from bert_tf.tasks import mistakes, predictions
from bert_tf.tasks.base import SentenceExample, Task
from bert_tf.tasks.evaluation import Evaluation, split_suffix, summarize
from bert_tf.tasks.scores import Logits

_CLASSES_SHOWN = 20


def write_evaluation(
    output_dir: str | os.PathLike[str],
    evaluations: Mapping[str, Evaluation],
    *,
    step: int,
    note: str = "",
    more: Mapping[str, Any] = types.MappingProxyType({}),
) -> dict[str, float]:
    """Writes eval_results.txt (key = value, as the published script) and eval_results.json, and logs them.

    Keys are eval_<metric> and eval_loss, where there are several splits for their mean and for each, as eval_accuracy_matched;
    loss, the same as eval_loss; and global_step. The JSON file holds intervals and tables of each split besides; a
    metric whose interval cannot be told has none.

    Args:
      output_dir: the folder.
      evaluations: by split.
      step: of the checkpoint.
      note: on the data, for those who compare the numbers.
      more: what else the JSON file is to hold.

    Returns:
      The values by key.

    Raises:
      OutputError: a file cannot be written.
    """
    summary = summarize(evaluations)
    results = {**{f"eval_{name}": value for name, value in summary.items()}, "loss": summary["loss"], "global_step": step}
    _log(results, evaluations)
    folder = Path(output_dir)
    atomic.write_text(folder / "eval_results.txt", "".join(f"{key} = {results[key]}\n" for key in sorted(results)))
    splits = {split: _details(evaluation) for split, evaluation in evaluations.items()}
    content = {**results, **more, **({"note": note} if note else {}), "splits": splits}
    atomic.write_text(folder / "eval_results.json", documents.to_json(content, indent=2, sort_keys=True) + "\n")
    return results


def write_mistakes(output_dir: str | os.PathLike[str], found: Mapping[str, Sequence[mistakes.Mistake]]) -> None:
    """Writes wrong_examples.jsonl; an evaluation without any leaves an empty file.

    Args:
      output_dir: the folder.
      found: by split.

    Raises:
      OutputError: the file cannot be written.
    """
    _write_lines(Path(output_dir) / mistakes.FILE, mistakes.lines(found))


def write_predictions(
    output_dir: str | os.PathLike[str],
    task: Task,
    split: str,
    examples: Sequence[SentenceExample],
    logits: Logits,
    *,
    label_separator: str = ",",
) -> None:
    """Writes the predictions of a split.

    predictions.tsv has header, id, label and scores; test_results.tsv scores only, as published; submission/<name>.tsv, where
    GLUE's server takes the split, what it wants. Where a task has several splits, the first two names carry theirs:
    predictions_matched.tsv. The one that the published script predicts, test_matched of MNLI, is in test_results.tsv too.

    Args:
      output_dir: the folder.
      task: what was predicted.
      split: of test.
      examples: E of them.
      logits: [E, L], in their order.
      label_separator: see `predictions.Layout`.

    Raises:
      OutputError: a file cannot be written.
    """
    folder, suffix = Path(output_dir), split_suffix(split)
    ids = [example.guid for example in examples]
    layout = predictions.Layout(task.head, task.labels, label_separator)
    atomic.write_text(folder / f"predictions{suffix}.tsv", layout.header() + layout.rows(ids, logits))
    for name in {suffix, split_suffix(task.published_name(split))}:
        _write_lines(folder / f"test_results{name}.tsv", map("\t".join, predictions.score_cells(task.head, logits)))
    logging.info("predictions of %d examples are in %s", len(examples), folder / f"predictions{suffix}.tsv")
    name = task.submission(split)
    if name:
        _write_lines(folder / submission.FOLDER / f"{name}.tsv", submission.lines(task, logits))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    atomic.write_text(path, "".join(f"{line}\n" for line in lines))


def _log(results: Mapping[str, float], evaluations: Mapping[str, Evaluation]) -> None:
    intervals = {
        f"eval_{name}{split_suffix(split)}": f" (95 %: {low:.4f} to {high:.4f})"
        for split, evaluation in evaluations.items()
        for name, (low, high) in evaluation.intervals.items()
    }
    as_published = {key: np.float32(value) if isinstance(value, float) else value for key, value in sorted(results.items())}
    listed = ", ".join(f"{key} = {value!s}" for key, value in as_published.items())
    published.info("Saving dict for global step %d: %s", results["global_step"], listed)
    published.info("evaluation_loop marked as finished")
    logging.info("***** Eval results *****")
    for key, value in as_published.items():
        published.info("  %s = %s", key, value)
        if key != "loss":  # the same as eval_loss
            shown = value if isinstance(value, int) else f"{value:.6g}"
            short.info("  %s = %s%s", key, shown, intervals.get(key, ""))
    for split, evaluation in evaluations.items():
        short.info("%s: %d examples", split, len(evaluation.labels))
        for line in _table(evaluation.per_class):
            short.info("  %s", line)
        if evaluation.collapsed:
            logging.warning("%s: nothing was learned: %s; try another --seed or --learning_rate", split, evaluation.collapsed)


def _table(classes: Sequence[ClassScores]) -> list[str]:
    if not classes:
        return []
    shown = classes[:_CLASSES_SHOWN]
    width = max(len(name) for name in ("label", *(row.label for row in shown)))
    return [
        f"{'label':<{width}}  precision  recall     f1  support",
        *(f"{row.label:<{width}}  {row.precision:9.3f}  {row.recall:6.3f}  {row.f1:5.3f}  {row.support:7}" for row in shown),
        *([f"and {len(classes) - len(shown)} more, see eval_results.json"] if len(classes) > len(shown) else []),
    ]


def _details(evaluation: Evaluation) -> dict[str, Any]:
    """Returns what eval_results.json holds of a split."""
    confusion = evaluation.confusion
    return {
        **evaluation.values,
        "examples": len(evaluation.labels),
        "collapsed": evaluation.collapsed,
        "intervals_95": evaluation.intervals,
        "labels": evaluation.label_names,
        "per_class": [row._asdict() for row in evaluation.per_class],
        **({} if confusion is None else {"confusion": confusion.tolist()}),
    }
