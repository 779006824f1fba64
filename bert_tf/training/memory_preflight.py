"""Checks by forecast whether training fits into GPU memory, before the graph is built."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf import extension
from bert_tf.config import BertConfig
from bert_tf.errors import PreflightError
from bert_tf.estimator.run import last_step
from bert_tf.features.columns import Features
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Head, trains_pooler
from bert_tf.profiling.forecast import fitting
from bert_tf.profiling.forecast.compute_options import POOLER, ComputeOptions, Step, with_adapted
from bert_tf.profiling.forecast.fitting import MEBIBYTE
from bert_tf.profiling.forecast.step_peak import forecast
from bert_tf.runtime import gpu_failures
from bert_tf.runtime.placement import EMBEDDINGS, Rule
from bert_tf.tasks.base import Example, OnDisk
from bert_tf.training import speed
from bert_tf.training.run import Run, together, training_limits
from bert_tf.training.settings import LAMB

# Relative error of the forecast: a step that exceeds the memory by more is certain not to fit.
_ERROR = 0.15
_NAMED = 2  # remedies of an extension that a refusal names
_SAMPLE = 256  # examples sampled to estimate lengths
_LONGEST = 32  # examples with the most characters, of which one has the most tokens, or nearly


class Lengths(NamedTuple):
    """Lengths of rows in batches."""

    tokens: int  # of the longest example, the padded length of its batch
    padding: float  # share of positions
    spread: float  # standard deviation of padding between examples
    rows_per_example: float = 1.0  # mean; 1 if rows are drawn singly
    rows_spread: float = 0.0  # standard deviation of that number
    most_rows: int = 1  # of an example
    places: int = 0  # max slots of a row


def fitted(run: Run, memory: int | None) -> Run:
    """Checks a run against `memory` (bytes per GPU; None: no check); --fit_memory picks the fewest micro-batches.

    Raises PreflightError if the forecast exceeds the memory by more than its error, and --check_memory is on.
    """
    switches = run.spec.train.fit_memory, run.spec.train.check_memory
    rules = run.spec.devices.rules
    if not run.machine.sees_gpu or memory is None or not _can_tell(run, rules) or not any(switches):
        if run.spec.train.fit_memory:
            log.warning("--train_batch_size=auto: the GPU memory is unknown; the batch size stays as given")
        return run
    steps = run.least_schedule.steps + sum(phase.steps or 0 for phase in run.phases[1:])
    if last_step(run.output_dir) >= steps:  # nothing is left to train
        return run
    for phase in run.phases:
        of_phase = {"train_batch_size": phase.batch_size, "max_seq_length": phase.max_seq_length}
        part = dataclasses.replace(run, spec=run.spec.replaced(of_phase))
        lengths = _lengths(part, phase.split)
        options = _options(part, lengths, hosted=bool(rules))
        if run.spec.train.fit_memory:
            part, options = _in_parts(part, options, lengths, memory)
        _check(part, options, lengths, memory, flag=f"--{phase.prefix}train_batch_size")
        pieces = part.spec.train.gradient_accumulation_steps
        if pieces != run.spec.train.gradient_accumulation_steps:
            run = dataclasses.replace(run, spec=run.spec.replaced({"gradient_accumulation_steps": pieces}))
    return run


def _can_tell(run: Run, rules: tuple[Rule, ...]) -> bool:
    """Whether the forecast applies: it must know where weights lie, and XLA keeps tensors of its own."""
    hosted = all(rule.kind == EMBEDDINGS and "CPU" in rule.device for rule in rules)
    return hosted and run.machine.plan.strategy != "central_storage" and not run.spec.speed.xla


def _lengths(run: Run, split: str) -> Lengths:
    """Mean of a sample of examples; maximum over those with the longest texts."""
    examples, options = run.examples[split], run.spec.speed
    if isinstance(examples, OnDisk):
        return _of_rows(run, examples)
    some = _features(run, examples[:: max(1, len(examples) // _SAMPLE)])
    longest = _features(run, heapq.nlargest(_LONGEST, examples, key=lambda example: sum(map(len, example.texts))))
    lengths, most = some.lengths, max(longest.lengths.max(), some.lengths.max())
    tokens = speed.batching(options, run.spec.data.max_seq_length).tokens(int(most))
    most_rows = int(max(longest.unit_rows.max(), some.unit_rows.max()))
    places = 0 if longest.slots is None else int(longest.slots.max(initial=0))
    if options.group_by_length:  # the longest are in one batch
        is_longest = some.unit_lengths == some.unit_lengths.max()
        rows = some.unit_rows[is_longest]
        return Lengths(tokens, 0.0, 0.0, float(rows.mean()), float(rows.std()), most_rows, places)
    padding, spread = 1.0 - float(lengths.mean()) / tokens, float(lengths.std()) / tokens
    return Lengths(tokens, padding, spread, float(some.unit_rows.mean()), float(some.unit_rows.std()), most_rows, places)


def _of_rows(run: Run, examples: OnDisk) -> Lengths:
    numbers = np.arange(0, len(examples), max(1, len(examples) // _SAMPLE))
    some = examples.rows.drawn(numbers, np.zeros_like(numbers)).features
    tokens = speed.batching(run.spec.speed, examples.longest).tokens(examples.longest)
    places = 0 if some.slots is None else int(some.slots.max(initial=0))
    return Lengths(tokens, 1.0 - float(some.lengths.mean()) / tokens, float(some.lengths.std()) / tokens, places=places)


def _features(run: Run, examples: Sequence[Example]) -> Features:
    family = run.task.family
    return together(family.features(examples, run.weights.tokenizer, training_limits(run)), family)


def _options(run: Run, lengths: Lengths, *, hosted: bool) -> ComputeOptions:
    train, computing = run.spec.train, run.spec.speed
    options = ComputeOptions(
        micro_batches=train.gradient_accumulation_steps,
        recompute=train.recompute,
        precision=computing.precision,
        frozen=train.frozen,
        host_embeddings=hosted,
        pack_tokens=computing.pack_tokens,
        padding=lengths.padding,
        spread=lengths.spread,
        rows_per_example=lengths.rows_per_example,
        rows_spread=lengths.rows_spread,
        most_rows=lengths.most_rows,
        places=lengths.places,
        last_layer_cls_only=computing.last_layer_cls_only,
        custom_gradients=computing.custom_gradients,
        fused_adam=computing.fused_adam,
        defer_embeddings=computing.defer_embeddings,
        lamb=train.optimizer == LAMB,
        averages=train.ema is not None,
        replicas=run.machine.replicas,
        evaluates=train.eval_every_n_steps > 0,
        growth=run.machine.session_config.gpu_options.allow_growth,
    )
    options = with_head(options, heads.make_head(run.task.family.head), run.config)
    options = dataclasses.replace(options, fewest_examples=run.fewest_examples)
    return with_adapted(options, run.spec.asked, run.config, run.new_parts)


def with_head(options: ComputeOptions, head: Head, config: BertConfig) -> ComputeOptions:
    """Adds the head to the options of a step; drops options that it does not support."""
    return dataclasses.replace(
        options,
        head=tuple(head.variables(config).values()),
        head_memory=head.memory,
        frozen=options.frozen if trains_pooler(head, config) else options.frozen | {POOLER},
        reads_tokens=head.reads_tokens,
        fewest_examples=head.fewest_examples,
        places=options.places if head.reads_places else 0,
        tied_words=head.reads_word_table,
        defer_embeddings=options.defer_embeddings and not head.reads_word_table,
    )


def _in_parts(run: Run, options: ComputeOptions, lengths: Lengths, memory: int) -> tuple[Run, ComputeOptions]:
    """Splits a batch into the fewest parts that fit; if none fits, `_check` reports it."""
    batch_size = run.spec.train.train_batch_size
    smallest = fitting.in_fewest_parts(Step(run.config, lengths.tokens, batch_size, options), memory)
    if smallest is None or smallest.options == options:
        return run, options
    count = smallest.options.micro_batches
    compared = "; each example is compared with those of its part alone" if options.fewest_examples > 1 else ""
    text = "--gradient_accumulation_steps=%d, so that batches of %d fit (--train_batch_size=auto)%s"
    log.info(text, count, batch_size, compared)
    spec = run.spec.replaced({"gradient_accumulation_steps": count})
    return dataclasses.replace(run, spec=spec), smallest.options


def _check(run: Run, options: ComputeOptions, lengths: Lengths, memory: int, *, flag: str) -> None:
    batch_size = run.spec.train.train_batch_size
    step = Step(run.config, lengths.tokens, batch_size, options)
    estimate = forecast(*step)
    message = (
        f"training needs about {estimate.needed // MEBIBYTE} MiB on each GPU, {estimate.gaps // MEBIBYTE} MiB of it for"
        f" rounding and fragmentation; {memory // MEBIBYTE} MiB are available for tensors"
    )
    if estimate.needed <= memory:
        log.info("%s (%s)", message, estimate.moment)
        return
    users = gpu_failures.others()
    message += f" ({users})" if users else ""
    plans = [entry.remedies for entry in extension.installed().values() if entry.remedies]
    helps = [text for plan in plans for text in extension.load(plan)(step, memory)[:_NAMED]]
    largest = fitting.largest_batch(step, memory)
    has_flag = any("--train_batch_size" in text for text in helps)
    helps += [f"--train_batch_size={largest}"] if largest and not has_flag else []
    helps = [text.replace("--train_batch_size", flag) for text in helps]
    remedy = f"try {' or '.join(helps) or 'a smaller model'}"
    remedy += extension.advice("memory plan", "; python -m bert_tf memory plan shows what uses it")
    if estimate.peak <= memory * (1.0 + _ERROR) or not run.spec.train.check_memory:
        log.warning("%s, it may run out of memory: %s", message, remedy)
        return
    raise PreflightError([f"{flag}={batch_size}: {message}: {remedy}, --nocheck_memory trains anyway"])
