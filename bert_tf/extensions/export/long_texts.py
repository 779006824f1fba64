"""Measures for the model card how transformers truncates real long texts differently from training.

No setting of `tokenizers` matches the published rule. Both remove pieces from the longer text; on a tie the rule
shortens the second, `longest_first` the first. If an odd number of pieces fits, as in sequences of 64 or 128, the
odd one goes to the other text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import BertError, FlagError
from bert_tf.extensions.export.job import ExportJob, Labelled, float32_inference
from bert_tf.features import sentences
from bert_tf.features.columns import Features
from bert_tf.features.long_text import LONGEST_FIRST, TRUNCATE
from bert_tf.head_spec import CHOICE, CONTRASTIVE, REGRESSION, SIMILARITY
from bert_tf.io.log_form import log
from bert_tf.tasks.names import KINDS
from bert_tf.tasks.sentence.rows import SentenceExample

_EXAMPLES = 1000  # the first ones of a split

_RULE = (
    "Training shortened pairs of more than {length} tokens at the end of the longer text, on a tie of the second;"
    " `truncation=True` shortens the first on a tie, and no setting changes that."
)
_OTHER_RULE = "Training read texts of more than {length} tokens by `long_text={rule}`, which `truncation=True` cannot do."
_ENCODE = """\
This code reproduces the ids of training:

```python
def encode(tokenizer, first, second, length={length}):
    first, second = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (first, second))
    kept = min(len(second), max((length - {special}) // 2, length - {special} - len(first)))
    first = [tokenizer.cls_token_id, *first[: length - {special} - kept], {between}]
    second = [*second[:kept], tokenizer.sep_token_id]
    return {{"input_ids": first + second{segments}}}
```"""
_SEGMENTS = ', "token_type_ids": [0] * len(first) + [1] * len(second)'


class Difference(NamedTuple):
    """Effect of another truncation."""

    long: int  # number of texts or pairs that are truncated
    others: int  # number of those with different ids
    largest: float  # change of a probability or of the predicted number
    labels: int  # number of changed labels


def lines(exported: ExportJob) -> Iterator[str]:
    """The card's lines on long texts; none if transformers truncates as training did."""
    limits, kind, vocabulary = exported.trained.limits, exported.family.kind, exported.trained.vocabulary
    if kind in (SIMILARITY, CONTRASTIVE, CHOICE) and limits.long_text != TRUNCATE:
        told = _OTHER_RULE.format(length=limits.max_seq_length, rule=limits.long_text)
        log.warning("long texts: %s", told)
        yield told
    if kind not in KINDS or (limits.long_text == TRUNCATE and (vocabulary.own_rules or not _may_read_pairs(exported))):
        if exported.options.gate_data:
            raise FlagError(
                "--gate_data: nothing is measured on it, as long texts of this model are not compared; leave it out"
            )
        return
    rule = _RULE if limits.long_text == TRUNCATE else _OTHER_RULE
    told = f"{rule.format(length=limits.max_seq_length, rule=limits.long_text)} {_measured(exported)}"
    log.warning("long texts: %s", told)
    yield told
    if limits.long_text == TRUNCATE:
        yield ""
        yield _ENCODE.format(
            length=limits.max_seq_length,
            special=2 + vocabulary.separators,
            between=", ".join(["tokenizer.sep_token_id"] * vocabulary.separators),
            segments=_SEGMENTS if exported.trained.config.type_vocab_size > 1 else "",
        )


def _may_read_pairs(exported: ExportJob) -> bool:
    with contextlib.suppress(FlagError):
        return exported.reads_pairs
    return True


def _measured(exported: ExportJob) -> str:
    for name, examples in _examples(exported).items():
        longer, joined = _longer(exported, examples[:_EXAMPLES])
        if longer:
            difference = measure(exported, longer)
            among = name if joined == 1 else f"{name}, each of {joined} rows joined"
            values = "scores" if exported.family.kind == REGRESSION else "probabilities"
            return (
                f"Of {difference.long} long examples ({among}), {difference.others} get different ids;"
                f" {values} change by up to {difference.largest:.3f}, labels of {difference.labels} examples."
            )
    return "The effect was not measured: no labelled examples (`--gate_data`)."


def _examples(exported: ExportJob) -> Labelled:
    """Labelled examples by split; empty if none were requested and the task has none here."""
    with contextlib.suppress(*([] if exported.options.gate_data else [BertError])):
        return exported.labelled()
    return {}


def _longer(exported: ExportJob, examples: Sequence[SentenceExample]) -> tuple[Sequence[SentenceExample], int]:
    """Examples that are truncated, and the number of adjacent rows joined to make each long enough."""
    trained, joined = exported.trained, 1
    separators = trained.vocabulary.separators
    while examples:
        sizes = [[len(trained.tokenizer.ids(text)) for text in example.texts] for example in examples]
        longer = [
            one for one, size in zip(examples, sizes) if sum(size) + 2 + separators * (len(size) - 1) > trained.max_seq_length
        ]
        if longer:
            return longer, joined
        examples, joined = list(map(_joined, examples[::2], examples[1::2])), 2 * joined
    return (), joined


def _joined(one: SentenceExample, other: SentenceExample) -> SentenceExample:
    texts = [" ".join(parts) for parts in zip(one.texts, other.texts)]
    return dataclasses.replace(one, **dict(zip(("text_a", "text_b"), texts)))


def measure(exported: ExportJob, examples: Sequence[SentenceExample]) -> Difference:
    """Changes if `tokenizers` truncates `examples`, all of which exceed the model's length."""
    trained, family = exported.trained, exported.family
    texts = [(example.text_a, example.text_b) for example in examples]
    as_trained, as_library = (
        sentences.build(texts, None, trained.tokenizer, max_seq_length=trained.max_seq_length, long_text=rule)
        for rule in (trained.long_text, LONGEST_FIRST)
    )
    with contextlib.closing(float32_inference().engine()) as engine:
        engine.load(trained)
        logits = [family.predictions(engine.outputs(one), one, examples) for one in (as_trained, as_library)]
    values, labels = zip(*(_decided(family.listed(one, examples)) for one in logits))
    return Difference(
        len(examples),
        sum(map(operator.ne, _rows(as_trained, len(examples)), _rows(as_library, len(examples)))),
        float(np.abs(values[0] - values[1]).max(initial=0.0)),
        0 if family.kind == REGRESSION else sum(map(operator.ne, *labels)),
    )


def _decided(predictions: Sequence[Any]) -> tuple[npt.NDArray[np.float64], list[Any]]:
    """Probabilities [E, L] or numbers [E, 1], and labels."""
    labels = [one.label for one in predictions]
    return np.array([list(one.probabilities.values()) or [one.label] for one in predictions], np.float64), labels


def _rows(features: Features, examples: int) -> list[tuple[tuple[int, ...], ...]]:
    """Rows of ids per example, after the length of its first text, which defines the segments."""
    rows: list[tuple[tuple[int, ...], ...]] = [()] * examples
    ends = np.cumsum(features.lengths)
    for number, (first, end) in enumerate(zip(features.first_lengths, ends)):
        example = number if features.example_ids is None else features.example_ids[number]
        ids = features.token_ids[end - features.lengths[number] : end]
        rows[example] += ((int(first), *ids.tolist()),)
    return rows
