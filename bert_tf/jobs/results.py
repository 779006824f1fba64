"""Writes the results of a run into its folder, for people and scripts."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import atomic, documents, run_layout
from bert_tf.log_form import log, published, short
from bert_tf.tasks.base import Task
from bert_tf.tasks.evaluation import Evaluation, split_suffix, summarize


def write_evaluation(
    output_dir: str | os.PathLike[str],
    evaluations: Mapping[str, Evaluation],
    *,
    step: int,
    note: str = "",
    more: Mapping[str, Any] = types.MappingProxyType({}),
    averages: Mapping[str, Mapping[str, Evaluation]] = types.MappingProxyType({}),
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
      averages: by split, of each average of the weights that the run has; their keys end in its name: eval_accuracy_ema.

    Returns:
      The values by key.

    Raises:
      OutputError: a file cannot be written.
    """
    summary = summarize(evaluations)
    results = {**{f"eval_{name}": value for name, value in summary.items()}, "loss": summary["loss"], "global_step": step}
    for kind, of_kind in averages.items():
        results.update({f"eval_{name}_{kind}": value for name, value in summarize(of_kind).items()})
    _log(results, evaluations)
    folder = Path(output_dir)
    atomic.write_text(folder / run_layout.RESULTS_TEXT, "".join(f"{key} = {results[key]}\n" for key in sorted(results)))
    every = {"": evaluations, **averages}
    splits = {title(split, kind): found.details() for kind, of_kind in every.items() for split, found in of_kind.items()}
    content = {**results, **more, **({"note": note} if note else {}), "splits": splits}
    atomic.write_text(folder / run_layout.RESULTS, documents.to_json(content, indent=2, sort_keys=True) + "\n")
    return results


def title(split: str, average: str) -> str:
    """Returns what results of a split are called.

    Args:
      split: its name.
      average: of the weights, which is measured; empty for the weights of the run.
    """
    return f"{split} ({average})" if average else split


def write_mistakes(output_dir: str | os.PathLike[str], found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Writes wrong_examples.jsonl; an evaluation without any leaves an empty file.

    Args:
      output_dir: the folder.
      found: by split, see `Family.mistakes`.

    Raises:
      OutputError: the file cannot be written.
    """
    lines = (documents.to_json({"split": split, **mistake}) for split, of_split in found.items() for mistake in of_split)
    _write_lines(Path(output_dir) / run_layout.WRONG_EXAMPLES, lines)


def write_predictions(
    output_dir: str | os.PathLike[str],
    task: Task,
    split: str,
    examples: Sequence[Any],
    predictions: Any,
) -> Path:
    """Writes the predictions of a split: the files of its family, and submission/<name>.tsv where GLUE's server takes it.

    Where a task has several splits, names carry theirs: predictions_matched.tsv. The one that the published script predicts,
    test_matched of MNLI, has its files under the published name too.

    Args:
      output_dir: the folder.
      task: what was predicted.
      split: of test.
      examples: E of them.
      predictions: in their order, see `Family.predictions`.

    Returns:
      The file that holds them.

    Raises:
      OutputError: a file cannot be written.
    """
    folder, suffix = Path(output_dir), split_suffix(split)
    published = split_suffix(task.published_name(split))
    files = task.family.files(predictions, examples, suffix=suffix, published_suffix=published)
    for name, text in files.items():
        atomic.write_text(folder / name, text)
    written = folder / next(iter(files))
    log.info("predictions of %d examples are in %s", len(examples), written)
    wanted = task.submission(split)
    if wanted is not None:
        _write_lines(folder / run_layout.SUBMISSION / f"{wanted.name}.tsv", wanted.lines(predictions))
    return written


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
    log.info("***** Eval results *****")
    for key, value in as_published.items():
        published.info("  %s = %s", key, value)
        if key != "loss":  # the same as eval_loss
            shown = value if isinstance(value, int) else f"{value:.6g}"
            short.info("  %s = %s%s", key, shown, intervals.get(key, ""))
    for split, evaluation in evaluations.items():
        short.info("%s: %d examples", split, evaluation.examples)
        for line in evaluation.table():
            short.info("  %s", line)
        if evaluation.collapsed:
            log.warning("%s: nothing was learned: %s; try another --seed or --learning_rate", split, evaluation.collapsed)
