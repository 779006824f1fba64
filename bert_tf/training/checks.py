"""Checks that the parts of a run fit each other, before anything is written or computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from bert_tf import run_layout
from bert_tf.checkpoints import converted_files, model_formats, saved, weight_files
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.checkpoints.reader import model_reader
from bert_tf.checkpoints.restore import RestorePlan, from_scratch, plan_restore
from bert_tf.errors import CheckpointError, FlagError, PreflightError
from bert_tf.estimator import preflight, run_folder
from bert_tf.estimator.run import last_step
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import trains_pooler
from bert_tf.optimization import parts
from bert_tf.profiling.wall_clock import DATA, WALL
from bert_tf.tasks.base import DEV, TEST, TRAIN, OnDisk
from bert_tf.training.run import Run, find_loss_options, find_metric, find_target

_NAMED = 3  # ids in a warning


@WALL.span(DATA)
def check(run: Run) -> Run:
    """Returns the run with its restore plan; PreflightError has one line per problem, FlagError names a setting."""
    if run.spec.inference.submission_zip and not any(map(run.task.submission, run.splits.get(TEST, ()))):
        raise FlagError(f"--submission_zip: GLUE's server takes no predictions of {run.task.name}, or --do_predict is missing")
    find_target(run.spec.train, run.task)  # before the folder is claimed
    problems = run.weights.problems(trains=TRAIN in run.splits)
    for part in run.parts.values():
        problems += part.check(run)
    changing = [name for name, part in run.parts.items() if part.head() is not None]
    if len(changing) > 1:
        raise FlagError(f"{' and '.join(changing)} change the loss: leave the settings of all but one out")
    if TRAIN in run.splits:
        _warn_of_missing_labels(run)
        _warn_of_accuracy(run, find_metric(run.spec.train, run.task))
        find_loss_options(run.spec.train, run.task)
        problems += _of_training(run)
    for rule in run.spec.devices.rules:
        rule.check_layers(run.config.num_hidden_layers)
    layers, count = run.config.weighted_layers, run.spec.train.reinit_layers
    shared = layers < run.config.num_hidden_layers
    parts.check_layers(run.spec.train.frozen, layers, shared=shared)
    if count > layers:
        raise FlagError(f"--reinit_layers={count}: the model has {parts.counted(layers, shared=shared)}")
    if shared and count == layers:
        anew = "layers share their weights, so all would begin anew"
        raise FlagError(f"--reinit_layers={count}: {anew}; give --reinit_layers={layers - 1}")
    restore = _restored(run, problems)
    preflight.refuse(problems)
    for part in run.parts.values() if TRAIN in run.splits else ():
        restore = part.restored(run, restore)
    if TRAIN in run.splits:
        _refuse_frozen(run, restore)
    preflight.refuse(list(_of_files(run)))
    _warn_of_leaks(run)
    return dataclasses.replace(run, restore=restore)


def _refuse_frozen(run: Run, restore: RestorePlan) -> None:
    """Raises FlagError if --freeze would keep what begins with random weights."""
    new, count = {parts.part_of(name) for name in restore.initialized}, run.spec.train.reinit_layers
    is_new_pooler = converted_files.has_new_pooler(restore.prefix) and not restore.values  # these are of a trained one
    lacking = {parts.POOLER} if is_new_pooler else set()
    unread = set() if trains_pooler(heads.make_head(run.task.family.head), run.config) else {parts.POOLER}
    kept = run.spec.train.frozen.intersection((new | lacking) - unread)
    if kept:
        remedy = f", or add --reinit_layers=0 (it is {count})" if count and not kept & lacking else ""
        names = ", ".join(sorted(map(str, kept), key=lambda name: (len(name), name)))  # 9 before 10
        raise FlagError(f"--freeze: {names} would keep the random weights of their start; leave them out{remedy}")


def _warn_of_accuracy(run: Run, chosen_by: str | None) -> None:
    """Warns if accuracy chooses among checkpoints whose rare classes are weighted."""
    train, others = run.spec.train, run.task.family.metrics[1:]
    if train.class_weights and not train.best_metric and chosen_by == "eval_accuracy" and others:
        log.warning(
            "--class_weights: accuracy chooses the best checkpoint, and prefers frequent classes; try --best_metric=%s",
            others[0],
        )


def _warn_of_missing_labels(run: Run) -> None:
    """Warns of classes that no row teaches, as of a label that was listed or corrected away."""
    family, examples = run.task.family, run.examples[run.train_split]
    if family.kind not in (CLASSIFICATION, MULTI_LABEL) or isinstance(examples, OnDisk):
        return
    seen = {name for example in examples for name in (example.label if isinstance(example.label, tuple) else (example.label,))}
    missing = [name for name in family.labels if name not in seen]
    if missing:
        listing = ", ".join(missing[:_NAMED]) + ", ..." * (len(missing) > _NAMED)
        log.warning(
            "%s: no row has the label %s, which will not be learned; --labels lists the classes", run.train_split, listing
        )


def _warn_of_leaks(run: Run) -> None:
    """Warns of rows to evaluate that are trained on."""
    held_out = [split for split in run.splits.get(DEV, ()) if not isinstance(run.examples[split], OnDisk)]
    if TRAIN not in run.splits or isinstance(run.examples[run.train_split], OnDisk):
        return
    texts = {hash(example.texts) for example in run.examples[run.train_split]} if held_out else set()
    for split in held_out:
        rows = run.examples[split]
        leaked = [example.guid for example in rows if hash(example.texts) in texts]
        if leaked:
            listing = ", ".join(leaked[:_NAMED]) + ", ..." * (len(leaked) > _NAMED)
            log.warning(
                "%s: %d of %d rows are in train too, so their scores say little: %s", *(split, len(leaked), len(rows), listing)
            )


def _restored(run: Run, problems: list[str]) -> RestorePlan:
    variables = heads.make_head(run.task.family.head).variables(run.config)
    if run.source.from_scratch:
        return from_scratch(run.config, tuple(variables))
    try:
        reader = model_reader(run.weights.prefix)
    except CheckpointError as error:
        raise PreflightError([*problems, str(error)]) from error
    if TRAIN not in run.splits:
        problems += _of_trained(run)
    new = [name for name in encoder_shapes(run.config) if parts.part_of(name) in run.new_parts]
    plan = plan_restore(reader, run.config, tuple(variables), run.layers, new)
    problems += preflight.check_checkpoint(reader, plan)
    if TRAIN not in run.splits and not problems:
        problems += preflight.check_head(reader, variables)
    return plan


def _of_files(run: Run) -> Iterator[str]:
    """Yields problems with rows on disk; called last because making the rows can take long."""
    for split, examples in run.examples.items():
        if not isinstance(examples, OnDisk):
            continue
        count = len(examples)
        if split == run.splits.get(TRAIN, ("",))[0]:
            yield from preflight.check_training(examples, run.schedule(count))


def _of_training(run: Run) -> Iterator[str]:
    examples = run.examples[run.train_split]
    if not isinstance(examples, OnDisk):
        yield from preflight.check_training(examples, run.least_schedule)
    for phase in run.phases:
        yield from preflight.check_batch(
            phase.batch_size,
            replicas=run.machine.replicas,
            micro_batches=run.spec.train.gradient_accumulation_steps,
            fewest=run.fewest_examples,
            flag=f"{phase.prefix}train_batch_size",
        )
    for phase in run.phases[1:]:
        yield from preflight.check_length(f"{phase.prefix}max_seq_length", phase.max_seq_length, run.config)
    own_folders = run_layout.own_folders(run.output_dir)
    if any(path.resolve().parent in own_folders for path in run.source.files):
        yield f"{run.output_dir}: training starts from files in this folder; name another --output_dir"
    elif (model := _model_in(run.output_dir)) is not None:
        yield f"{model}: commands would read this model instead of the trained one; name another --output_dir"


def _model_in(folder: Path) -> Path | None:
    """Returns what `sources.checkpoint_of` finds in a folder before the checkpoints of a run; None if there is nothing."""
    published = folder / f"{CHECKPOINT_NAME}.index"
    return model_formats.file_of(folder) or weight_files.in_folder(folder) or (published if published.is_file() else None)


def _of_trained(run: Run) -> Iterator[str]:
    family = run.task.family.as_trained(run_folder.trained(run.weights.folder))  # inherited settings may be overridden
    yield from run_folder.misfits(run.weights.folder, family.record())
    yield from _of_average(run)
    yield from _of_other_weights(run)
    if run.target:
        from bert_tf.estimator.evaluations import read_evaluations

        if not read_evaluations(run.run_dir, up_to=last_step(run.run_dir)):
            yield f"--target_metric: {run.run_dir} was not evaluated during training (--eval_every_n_steps)"


def _of_average(run: Run) -> Iterator[str]:
    """The moving average is made during training: it can be evaluated later but not changed."""
    train, folder = run.spec.train, run.weights.folder
    was = run_folder.trained(folder).get("ema")
    if train.ema is not None and train.ema != was:
        earlier = "without --ema" if was is None else f"with --ema={was:g}"
        yield f"--ema={train.ema:g}: {folder} was trained {earlier}; leave the flag out"


def _of_other_weights(run: Run) -> Iterator[str]:
    """The results in a run's folder, which its page and its card show, are of the weights that commands use."""
    own = saved.best_or_newest(run.output_dir)
    is_another = own is not None and Path(own).resolve() != Path(run.weights.prefix).resolve()
    if run.spec.actions.do_eval and is_another and run.results_dir == run.output_dir:
        yield f"{run.weights.prefix}: its results would replace those of {own}; name a new --output_dir for them"
