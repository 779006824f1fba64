"""The same job with several seeds, one after the other in one process, and how far their results spread.

Each seed is a whole run in a folder of its own, so that a series that is stopped or killed goes on where it was.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import logging

from bert_tf import atomic, documents, text_table
from bert_tf.commands import classifier_job, recipes, report
from bert_tf.commands.classifier_flags import Settings
from bert_tf.commands.job import results_dir
from bert_tf.errors import FlagError
from bert_tf.estimator import run as estimator_run
from bert_tf.estimator import run_folder
from bert_tf.runtime import cluster

JSON_NAME, TSV_NAME = "seeds.json", "seeds.tsv"

_METRIC = "eval_"


class Spread(NamedTuple):
    """How the values of several seeds lie.

    Attributes:
      sd: standard deviation of the sample they are; None of one value.
    """

    mean: float
    sd: float | None
    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """What one seed reached on dev.

    Attributes:
      folder: of the run, below that of the series.
      steps: of training.
      metrics: by name, eval_loss among them.
      collapsed: why nothing was learned; None where something was.
    """

    seed: int
    folder: str
    steps: int
    metrics: Mapping[str, float]
    collapsed: str | None


def run(settings: Settings, *, environment: Mapping[str, str]) -> int:
    """Does the job of the settings with each of their seeds, and prints what they reached.

    Returns:
      Exit status: 0 done, 130 stopped by a signal with the state kept.

    Raises:
      BertError: something that the user can fix; seeds that are finished are kept.
    """
    with run_folder.writing(settings.job.output_dir):
        status = train_each(settings, environment=environment)
        if status == 0:
            report.at_end(Path(settings.job.output_dir))
            print("\n".join(table(collect(settings))))
    return status


def train_each(settings: Settings, *, environment: Mapping[str, str]) -> int:
    """Does the job with each seed, and writes seeds.json and seeds.tsv after each; returns and raises as `run`.

    A seed that is finished is evaluated again, not trained: its folder is that of a run which has no step left.
    """
    if not settings.job.do_eval:
        raise FlagError("--seeds compares evaluations: add --do_eval")
    if cluster.read(environment) is not None:
        raise FlagError("--seeds is for one machine: start a job of several machines once for each --seed")
    seeds = settings.job.seeds
    for number, seed in enumerate(seeds, start=1):
        logging.info("***** Seed %d, %d of %d *****", seed, number, len(seeds))
        single = _of_seed(settings, seed)
        if not single.job.do_train:
            estimator_run.require_checkpoint(single.job.output_dir)  # one model of --init_checkpoint would be that of all seeds
        status = classifier_job.run_job(single, environment=environment)
        if status != 0:
            return status
        # Of a task that the models were not trained on there is a table of its own.
        within = results_dir(single).relative_to(single.job.output_dir)
        write(atomic.make_folder(Path(settings.job.output_dir) / within), [_read(settings, done) for done in seeds[:number]])
    return 0


def collect(settings: Settings) -> list[SeedResult]:
    """Returns what the seeds of a finished series reached."""
    return [_read(settings, seed) for seed in settings.job.seeds]


def _of_seed(settings: Settings, seed: int) -> Settings:
    """Returns the settings of one run."""
    folder = str(Path(settings.job.output_dir) / _name(seed))
    return recipes.with_values(settings, {"seed": seed, "seeds": (), "output_dir": folder})


def _name(seed: int) -> str:
    return f"seed-{seed}"


def _read(settings: Settings, seed: int) -> SeedResult:
    """Returns what eval_results.json says of a seed that is evaluated."""
    results = documents.json_value((results_dir(_of_seed(settings, seed)) / "eval_results.json").read_text(encoding="utf-8"))
    metrics = {key: value for key, value in results.items() if key.startswith(_METRIC) and isinstance(value, (int, float))}
    collapsed = [f"{split}: {found['collapsed']}" for split, found in results["splits"].items() if found["collapsed"]]
    return SeedResult(seed, _name(seed), results["global_step"], metrics, "; ".join(collapsed) or None)


def spread(values: Sequence[float]) -> Spread:
    """Returns mean, standard deviation, lowest and highest."""
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, min(values), max(values))


def spreads(results: Sequence[SeedResult]) -> dict[str, Spread]:
    """Returns how each metric spreads over the seeds."""
    return {metric: spread([result.metrics[metric] for result in results]) for metric in results[0].metrics}


def write(folder: Path, results: Sequence[SeedResult]) -> None:
    """Writes seeds.json and seeds.tsv, each whole or not at all.

    Raises:
      OutputError: the folder cannot be written.
    """
    contents = {
        "seeds": [dataclasses.asdict(result) for result in results],
        "spread": {metric: found._asdict() for metric, found in spreads(results).items()},
    }
    atomic.write_text(folder / JSON_NAME, documents.to_json(contents, indent=2) + "\n")
    metrics = list(results[0].metrics)
    rows = [["seed", *metrics, "steps", "collapsed"]]
    for r in results:
        why = " ".join((r.collapsed or "").split())  # labels of one's own may hold tabs
        rows.append([str(r.seed), *(str(r.metrics[metric]) for metric in metrics), str(r.steps), why])
    atomic.write_text(folder / TSV_NAME, "".join("\t".join(row) + "\n" for row in rows))


def table(results: Sequence[SeedResult]) -> list[str]:
    """Returns lines for people: a row for each seed, then how they spread, and how many collapsed."""
    found = spreads(results)
    rows = [["seed", *found, "steps", ""]]
    rows += [[str(r.seed), *map(_digits, r.metrics.values()), str(r.steps), _flag(r)] for r in results]
    for field in Spread._fields:
        rows.append([field, *(_digits(getattr(of_metric, field)) for of_metric in found.values()), "", ""])
    collapsed = sum(result.collapsed is not None for result in results)
    return [*text_table.table(rows[0], rows[1:], left=(len(rows[0]) - 1,)), f"{collapsed} of {len(results)} collapsed"]


def _flag(result: SeedResult) -> str:
    return f"collapsed: {result.collapsed}" if result.collapsed else ""


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
