"""Checks that the parts of a run fit together before the graph is built; reports all problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bert_tf.config import BertConfig
from bert_tf.errors import PreflightError
from bert_tf.features.batching import Schedule
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Example, OnDisk
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tokenization import casing
from bert_tf.tokenization.vocabulary import Vocabulary

if TYPE_CHECKING:  # they import TensorFlow
    from bert_tf.checkpoints.reader import CheckpointReader
    from bert_tf.checkpoints.restore import RestorePlan

_SHORTEST = 5  # [CLS] a [SEP] b [SEP]
_ROUNDED_TO = (8, 16, 32, 64, 128)  # word table rows, for the hardware; 30522 pieces become 30528 rows
# By --do_lower_case: the casing that contradicts it, its value as text, the remedy.
_CASINGS = {True: ("cased", "on", "add --nodo_lower_case"), False: ("uncased", "off", "drop --nodo_lower_case")}


_SPARE = 100  # rows without a piece may be this part of the pieces: DeBERTa-v3 has 128,001 pieces and 128,100 rows


def check_model(config: BertConfig, vocabulary: Vocabulary, *, max_seq_length: int) -> list[str]:
    """Returns one line per mismatch of configuration, vocabulary and sequence length (in word pieces)."""
    problems = []
    if config.vocab_size != len(vocabulary):
        multiple = next((n for n in _ROUNDED_TO if config.vocab_size == -(-len(vocabulary) // n) * n), None)
        mismatch = f"the vocabulary has {len(vocabulary)} pieces, the configuration says {config.vocab_size}"
        spare = config.vocab_size - len(vocabulary)
        if multiple is None and 0 < spare <= len(vocabulary) // _SPARE:
            log.warning("%s: the last %d have no piece", mismatch, spare)
        elif multiple is None:
            problems.append(f"{mismatch}; take {vocabulary.file} and the configuration from one folder")
        else:
            log.warning("%s: treated as padding to a multiple of %d", mismatch, multiple)
    return problems + check_length("max_seq_length", max_seq_length, config)


def check_length(flag: str, length: int, config: BertConfig) -> list[str]:
    """Returns a line if `length` (tokens, set by `flag`) is too short or exceeds the model's positions."""
    if _SHORTEST <= length <= config.max_position_embeddings:
        return []
    return [f"--{flag}={length} is outside {_SHORTEST} to {config.max_position_embeddings}, the lengths the model supports"]


def check_casing(vocabulary: Vocabulary, *, lower_case: bool) -> list[str]:
    """Returns a line if lower-casing contradicts the vocabulary; warns if that is uncertain."""
    found_casing = casing.find(vocabulary)
    kind, flag, remedy = _CASINGS[lower_case]
    if found_casing.against(lower_case=lower_case):
        return [f"the vocabulary is {kind} ({found_casing}) but --do_lower_case is {flag}; {remedy}"]
    if found_casing.doubtful(lower_case=lower_case):
        log.warning("--do_lower_case is %s, which may not suit the model: %s", flag, found_casing)
    return []


def check_checkpoint(reader: CheckpointReader, plan: RestorePlan) -> list[str]:
    """Returns one line per mismatch of checkpoint and configuration; reads every entry to be loaded once."""
    problems = plan.problems()
    if problems:
        return problems
    from bert_tf.checkpoints.reader import problem_of_weights

    problem = problem_of_weights(reader, [plan.stored(name) for name in plan.loaded])
    return [problem] if problem else []


def check_head(reader: CheckpointReader, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Returns one line per mismatch of a trained head, after reading its weights; `shapes` are the expected ones."""
    wrong = wrong_shapes(reader, shapes)
    missing = [f"{name} is missing" for name in shapes if name not in reader.shapes]
    if missing or wrong:
        return [f"{reader.prefix}: {'; '.join(missing + wrong)}; is it a model of this task?"]
    from bert_tf.checkpoints.reader import problem_of_weights

    problem = problem_of_weights(reader, shapes)
    return [problem] if problem else []


def wrong_shapes(reader: CheckpointReader, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Returns one line per variable of a trained head without the expected shape."""
    return [
        f"{name} is {list(reader.shapes[name])}, expected {list(shape)}"
        for name, shape in shapes.items()
        if reader.shapes.get(name, shape) != shape
    ]


def check_training(examples: Sequence[Example], schedule: Schedule) -> list[str]:
    """Returns one line per reason why training could learn nothing."""
    problems = []
    labels = set() if isinstance(examples, OnDisk) else {example.label for example in examples}
    # Answers, tags and options differ in meaning from text to text.
    if len(labels) == 1 and isinstance(examples[0], SentenceExample) and isinstance(examples[0].label, (str, float, tuple)):
        problems.append(f"all {len(examples)} training examples have the label {labels.pop()!r}; nothing can be learned")
    if schedule.steps < 1:
        problems.append(
            f"{len(examples)} examples in {schedule.epochs:g} epochs do not fill a batch of {schedule.batch_size};"
            f" {'lower --train_batch_size' if schedule.epochs else 'raise --num_train_epochs'}"
        )
    return problems


def check_batch(
    batch_size: int, *, replicas: int, micro_batches: int = 1, fewest: int, flag: str = "train_batch_size"
) -> list[str]:
    """Returns a line if a training batch leaves replicas, or their micro-batches, without examples.

    The loss needs at least `fewest` examples together; `flag` names the batch size's setting.
    """
    parts = replicas * micro_batches
    if batch_size >= fewest * parts:
        return []
    if batch_size >= parts:
        return [f"--{flag}={batch_size} leaves single examples, but the loss compares examples; use at least {fewest * parts}"]
    each = f", in {micro_batches} micro-batches each (--gradient_accumulation_steps)" if micro_batches > 1 else ""
    return [
        f"--{flag}={batch_size} is shared by {replicas} replicas{each}, some of which get no example;"
        " raise it, or lower --num_gpus or --virtual_devices"
    ]


def refuse(problems: Sequence[str]) -> None:
    """Raises PreflightError listing all problems, if any."""
    if problems:
        raise PreflightError(problems)
