"""From what was asked to a run: completes the settings, finds and reads data and weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import run_layout
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.loading import load_metadata
from bert_tf.batch.trained import PRETRAINED, Trained, digest, has_head
from bert_tf.checkpoints import saved
from bert_tf.config import BertConfig
from bert_tf.errors import BadRowsError, BertError, CheckpointError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.estimator.run import require_checkpoint
from bert_tf.head_spec import PRETRAINING
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.profiling.wall_clock import DATA, WALL
from bert_tf.runtime.machine import Machine
from bert_tf.settings import setting_names
from bert_tf.tasks.base import DEV, TEST, TRAIN, Example, Opening, Task, Unopened
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import SKIP, lasting_names
from bert_tf.tokenization import casing
from bert_tf.training.run import Run
from bert_tf.training.run_spec import OF_PREDICTION, ExtensionSettings, Recipe, RunSpec, as_flags, dropped_recipe, recipe_of
from bert_tf.training.settings import DataSettings, ModelSettings, OutputSettings, TextSettings, TrainSettings
from bert_tf.training.sources import SAMPLE_NOTE, DataSource, ModelSource, PartialTask, checkpoint_of, find_data, find_model

if TYPE_CHECKING:
    from bert_tf.training.part import Part

_OF_TEXTS = setting_names(TextSettings)
_OF_TRAINING = frozenset(setting_names(DataSettings, TrainSettings, OutputSettings, ExtensionSettings, of_training=True))


@WALL.span(DATA)
def prepare(spec: RunSpec, machine: Machine, *, environment: Mapping[str, str], task: Task | None = None) -> Run:
    """Reads the files and logs where each part came from; `task` replaces the task of the settings."""
    trained = None if spec.actions.do_train else find_trained(spec, environment, task)
    record: Mapping[str, Any] = run_folder.trained(trained[1]) if trained else {}
    spec = _as_trained(spec, trained[0], record) if trained else spec
    parts = spec.parts()
    learning = {} if trained else parts
    for part in learning.values():
        spec = part.complete(spec, environment)
    labels = next((part.labels for part in learning.values() if part.labels), record.get("labels"))
    task, data = find_task(spec, task, labels, environment)
    splits = {purpose: task.splits(data.folder, purpose) for purpose in _purposes(spec)}
    read = read_examples(task, data, [split for names in splits.values() for split in names], spec)
    may_be_new = not trained and any(isinstance(of_split, Unopened) for of_split in read.values())
    source = find_model(spec.model, environment=environment, may_be_new=may_be_new)
    to_train_on = [] if trained else read[splits[TRAIN][0]]
    known = {"default_checkpoint": source.is_default, "sample_data": data.is_sample}
    recipe = recipe_of(spec, task.family, parts=learning, examples=to_train_on, **known)
    spec = spec.replaced(recipe.values)
    for name, part in parts.items():
        part.settings = getattr(spec.extensions, name)
    spec = spec if trained else _within_positions(spec, source, learning.values())
    _log_origins(spec, task, data, source, recipe)
    weights = _weights(spec, source, trained, recipe.values)
    weights, layers = _with_layers(weights, spec, learning.values())
    of_texts = {"max_seq_length": weights.max_seq_length, "do_lower_case": weights.lower_case, "long_text": weights.long_text}
    spec = spec.replaced(of_texts)
    examples = {split: _opened(of_split, spec, weights) for split, of_split in read.items()}
    for part in learning.values():
        examples.update(part.further_examples(to_train_on, spec.train.seed))
    decision = Decision.from_record(weights.record) if trained and spec.deciding is None else PUBLISHED
    run = Run(spec, task, data, source, weights, splits, examples, machine, decision=decision, layers=layers, parts=parts)
    if run.results_dir != run.output_dir:
        log.warning("the model was not trained on %s: results go to %s", task.name, run.results_dir)
    return run


def read_examples(task: Task, data: DataSource, splits: Iterable[str], spec: RunSpec) -> dict[str, Any]:
    """Reads splits; --max_train_examples and extensions change those to train on."""
    try:
        examples = {split: task.examples(data.folder, split) for split in splits}
    except BadRowsError as error:
        *others, last = error.problems
        raise BadRowsError([*others, f"{last}; correct the file, or add --{SKIP}"]) from error
    parts, most = spec.parts().values(), spec.data.max_train_examples
    for split in task.splits(data.folder, TRAIN) if spec.actions.do_train else ():
        if split in examples:
            for part in parts:
                examples[split] = part.read(examples[split], task)
            examples[split] = examples[split][:most] if most else examples[split]
    return examples


def find_task(
    spec: RunSpec, task_object: Task | None, labels: Sequence[str] | None, environment: Mapping[str, str]
) -> tuple[Task, DataSource]:
    if isinstance(task_object, PartialTask):
        return task_object, task_object.data
    if task_object is None:
        task = get_task(spec.data.task_name or "", spec.of_task, labels)
        return task, find_data(task, spec.data.data_dir, environment=environment)
    folder = spec.data.data_dir
    return task_object, DataSource(Path(folder or ""), "the task", has_folder=folder is not None, has_command=False)


def _weights(spec: RunSpec, source: ModelSource, trained: tuple[str, Path] | None, recipe_names: Collection[str]) -> Trained:
    """Returns the weights; without training, texts are read as in their training unless settings say otherwise."""
    explicit = spec.given | set(recipe_names)
    if not trained:
        explicit |= set(_OF_TEXTS) - ({"do_lower_case"} if casing.is_told_beside(source.vocabulary) else set())
    of_texts = {name: getattr(spec.data, name) for name in _OF_TEXTS if name in explicit}
    overrides = ModelOverrides(str(source.config), str(source.vocabulary), **of_texts)
    if trained:
        return load_metadata(trained[0], overrides, trained[1])
    return load_metadata(source.checkpoint, overrides, source.config.parent if source.from_scratch else None)


def _with_layers(weights: Trained, spec: RunSpec, parts: Iterable[Part]) -> tuple[Trained, tuple[int, ...]]:
    """The model of the layers of the checkpoint that a part starts from, and their numbers; none for all layers."""
    layers = next((some for part in parts if (some := part.layers(weights.config.num_hidden_layers))), ())
    if not layers:
        return weights, ()
    config = dataclasses.replace(weights.config, num_hidden_layers=len(layers))
    return dataclasses.replace(weights, config=config, folder=spec.output.folder), layers


def _within_positions(spec: RunSpec, source: ModelSource, parts: Iterable[Part]) -> RunSpec:
    """Limits rows to the model's positions unless a flag sets their length."""
    most = BertConfig.from_json_file(source.config).max_position_embeddings
    if "max_seq_length" not in spec.given and spec.data.max_seq_length > most:
        log.info("--max_seq_length=%d: the model has no more positions", most)
        spec = spec.replaced({"max_seq_length": most})
    for part in parts:
        spec = part.within_positions(spec, most)
    return spec


def _opened(examples: Sequence[Example] | Unopened, spec: RunSpec, weights: Trained) -> Sequence[Example]:
    if not isinstance(examples, Unopened):
        return examples
    return examples.opened(
        Opening(
            weights.tokenizer,
            spec.data.max_seq_length,
            spec.output.folder,
            spec.inference.eval_batch_size,
            weights.config.max_position_embeddings,
        )
    )


def _log_origins(spec: RunSpec, task: Task, data: DataSource, source: ModelSource, recipe: Recipe) -> None:
    files = data.folder if data.has_folder else "files that are named"
    log.info("task %s, data from %s%s", task.name, files, "" if data.is_sample else f" ({data.origin})")
    if data.is_sample:
        log.warning("this is the %s", SAMPLE_NOTE)
    log.info("checkpoint %s (%s)", source.checkpoint or "none", source.origin)
    if recipe.values:
        log.info("recipe %s: %s", recipe.origin, as_flags(recipe.values))
    own_record = source.checkpoint and not source.is_default and run_folder.trained(Path(source.checkpoint).parent)
    dropped = dropped_recipe(spec, recipe) if own_record and own_record.get("kind") == PRETRAINING else {}
    if dropped:
        log.info(
            "the recipe for the default checkpoint is not applied to your own; if it is as small, add %s", as_flags(dropped)
        )
    origin = "--output_dir" if "output_dir" in spec.given else "default"
    log.info("output to %s (%s)", spec.output.output_dir, origin)


def _purposes(spec: RunSpec) -> list[str]:
    """Purposes to read; dev also if evaluated during training. Warns of settings of a prediction that nobody asked for."""
    actions = spec.actions
    idle = sorted(spec.given & OF_PREDICTION)
    if idle and not actions.do_predict:
        log.warning("nothing is predicted without --do_predict, so these have no effect: --%s", ", --".join(idle))
    during_training = actions.do_train and spec.train.eval_every_n_steps > 0
    evaluates = actions.do_eval or spec.deciding is not None or during_training
    is_read = {TRAIN: actions.do_train, DEV: evaluates, TEST: actions.do_predict}
    return [purpose for purpose, do in is_read.items() if do]


def _as_trained(spec: RunSpec, checkpoint: str, record: Mapping[str, Any]) -> RunSpec:
    """Fills in data and model settings from the run of a trained model; `load_metadata` finds how it reads texts."""
    idle = spec.given & _OF_TRAINING
    if idle:
        log.warning("nothing is trained, so these have no effect: %s", ", ".join(f"--{name}" for name in sorted(idle)))
    learned = {name: record[name] for name in lasting_names() if name in record and name not in spec.given}
    if record and spec.given.isdisjoint(setting_names(ModelSettings)):
        learned["init_checkpoint"] = checkpoint
    spec = spec.replaced(learned)
    return dataclasses.replace(spec, of_task=dataclasses.replace(spec.of_task, needs_ids="id_column" in spec.given))


def find_trained(spec: RunSpec, environment: Mapping[str, str], task: Task | None = None) -> tuple[str, Path]:
    """Finds the checkpoint of the run in the output folder, or that of --init_checkpoint if named or needed, and its folder.

    The published script's commands name the pretrained checkpoint in evaluation too: with a run it has no effect. If
    the task's head has no variables, as for vectors, a pretrained model suffices. FlagError if the output folder holds
    another run than the named one.
    """
    if saved.best_or_newest(spec.output.folder) is None and not _is_learned(
        task or get_task(spec.data.task_name or "", spec.of_task)
    ):
        checkpoint = find_model(spec.model, environment=environment).checkpoint
        return checkpoint, Path(checkpoint).parent
    return _trained(spec, environment)


def _is_learned(task: Task) -> bool:
    """Whether a task's head has variables; assumed if the family is unknown until labels are read from a file."""
    try:
        return bool(heads.make_head(task.family.head).variables(BertConfig(vocab_size=1)))
    except BertError:
        return True


def _trained(spec: RunSpec, environment: Mapping[str, str]) -> tuple[str, Path]:
    output_dir = spec.output.folder
    if "init_checkpoint" not in spec.given:
        return require_checkpoint(output_dir), output_dir
    named_checkpoint = checkpoint_of(spec.model.init_checkpoint or "", environment=environment)
    checkpoint = saved.best_or_newest(output_dir)
    if checkpoint is None or named_checkpoint.resolve().parent in run_layout.own_folders(output_dir):
        if not has_head(named_checkpoint):
            raise CheckpointError(
                f"{named_checkpoint}: {PRETRAINED}; train it first (--do_train),"
                " or name a trained checkpoint with --init_checkpoint, or its folder with --output_dir"
            )
        return str(named_checkpoint), named_checkpoint.parent
    if _is_trained(named_checkpoint) and digest(str(named_checkpoint)) != run_folder.trained(output_dir).get(
        "checkpoint_sha256"
    ):
        raise FlagError(
            f"--init_checkpoint={spec.model.init_checkpoint}: --output_dir={output_dir} holds another run, {checkpoint};"
            " name a new --output_dir for the results of this checkpoint, or leave out --init_checkpoint"
        )
    return checkpoint, output_dir


def _is_trained(prefix: Path) -> bool:
    try:
        return has_head(prefix)
    except CheckpointError:  # it was moved since the training
        return False
