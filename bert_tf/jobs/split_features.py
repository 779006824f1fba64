"""Features of a job's splits: built, or read from the cache in its output folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bert_tf import run_layout
from bert_tf.errors import DataError
from bert_tf.estimator import describe
from bert_tf.features.columns import Features, TrainingRows
from bert_tf.features.long_text import TRUNCATE, WINDOWS
from bert_tf.inputs import cache
from bert_tf.jobs.job import Job
from bert_tf.log_form import log, published
from bert_tf.profiling.timing.wall_clock import FEATURES, WALL
from bert_tf.tasks.base import TRAIN, Example, Limits
from bert_tf.tasks.on_disk import OnDisk

_NAMED = 5  # examples in a message
_DESCRIBED = 8  # rows on the disk of which a description is made


@WALL.span(FEATURES)
def training_rows(job: Job, split: str) -> TrainingRows:
    """Returns the rows training draws from, and logs the first; BertError if there is nothing to learn."""
    examples = job.examples[split]
    if not isinstance(examples, OnDisk):
        return features(job, split)
    some = np.arange(min(_DESCRIBED, len(examples)))
    _describe(job, split, examples.rows.drawn(some, np.zeros_like(some)).features, examples.longest)
    log.info("%s: %d rows of up to %d tokens", split, len(examples), examples.longest)
    return examples.rows


@WALL.span(FEATURES)
def features(job: Job, split: str) -> Features:
    data, examples, family = job.settings.data, job.examples[split], job.task.family
    if isinstance(examples, OnDisk):
        fixed = examples.features()
        _describe(job, split, fixed, examples.longest)
        log.info("%s: %d rows, %.1f tokens on average", split, len(fixed), fixed.lengths.mean())
        return fixed
    trains = split in job.splits.get(TRAIN, ())
    truncates = trains and data.long_text == WINDOWS and not family.trains_on_windows
    long_text = TRUNCATE if truncates else data.long_text

    def build() -> Features:
        describe.log_writing(len(examples))
        return family.features(examples, job.tokenizer, Limits(data.max_seq_length, long_text))

    key = cache.CacheKey(
        task=job.task.name,
        split=split,
        labels=family.labels,
        kind=family.kind,
        examples=job.digest(split),
        vocabulary=job.vocabulary.fingerprint,
        lower_case=data.do_lower_case,
        max_seq_length=data.max_seq_length,
        long_text=long_text,
        of_family={name: value for name, value in family.record().items() if name not in ("labels", "kind")},
    )
    folder = job.output_dir / run_layout.FEATURES
    found, cached = cache.load_or_build(folder, key, family.targets, build, writes=job.machine.is_chief)
    _describe(job, split, found, data.max_seq_length)
    log.info(
        "%s: %d examples, %.1f tokens on average, %d truncated to %d%s",
        *(split, found.examples, found.lengths.mean(), found.truncated, data.max_seq_length),
        " (from the cache)" if cached else "",
    )
    if trains:
        _say_left_out(split, examples, found)
    return found


def _describe(job: Job, split: str, found: Features, longest: int) -> None:
    lines = describe.examples_lines(job.examples[split], found, job.vocabulary, max_seq_length=longest)
    for line in lines:
        published.info("%s", line)
    if job.machine.is_chief:
        describe.keep_examples(job.results_dir, split, lines)


def _say_left_out(split: str, examples: Sequence[Example], found: Features) -> None:
    """Warns about examples without anything to learn; DataError if all are."""
    left_out = found.weightless
    if len(left_out) == found.examples:
        raise DataError("no example can be trained on: what they teach is in no row", split)
    if len(left_out):
        names = ", ".join(examples[number].guid for number in left_out[:_NAMED]) + (", ..." if len(left_out) > _NAMED else "")
        log.warning(
            "%s: %d of %d examples are not trained on, since what they teach is in no row: %s",
            *(split, len(left_out), found.examples, names),
        )
