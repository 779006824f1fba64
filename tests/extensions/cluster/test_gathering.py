"""Parts of a split that are gathered: as they were written, in any order, and never as code."""

import io
import pickle
import struct

import numpy as np
import pytest

from bert_tf.extensions.cluster import gathering
from bert_tf.extensions.cluster.gathering import Gathered, GatheredForm, parts_of
from bert_tf.extensions.similarity.family import BELONG, ContrastiveFamily
from bert_tf.extensions.span.decoding import Candidate, Found
from bert_tf.extensions.span.predictions import Predictions, chosen
from bert_tf.extensions.span.reader import Answer, SpanExample
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.extensions.tags.predictions import TagPredictions
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.rows import SentenceExample

CANDIDATE = Candidate("a", 0, 1, 0, 0.5, 0.25)
NONE = Candidate("", None, None, 0, float("-inf"), 0.125)


def stream(*parts: Gathered) -> io.BytesIO:
    return io.BytesIO(b"".join(map(GatheredForm().encode, parts)))


def same(a, b) -> bool:
    """Whether two values are of the same classes, types and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return same(vars(a), vars(b)) if hasattr(a, "__dataclass_fields__") else repr(a) == repr(b)


PARTS = {
    "sentences": Gathered(
        3,
        [SentenceExample("dev-1", "", None, "ja"), SentenceExample("2", "", None, ("a", "b"))],
        np.float32([[1, np.nan], [0.1, 2]]),
    ),
    "numbers": Gathered(0, [SentenceExample("1", "", None, 0.1)], np.zeros((0, 3), np.float16)),
    "options": Gathered(1, [], [np.arange(3.0), np.arange(2.0)]),
    "spans": Gathered(
        1,
        [SpanExample("q", "Wer?", "\ud83d ab", (Answer("a", 0),))],
        Predictions([chosen("q", Found([CANDIDATE], NONE), 0.0)], 0.5, 1),
    ),
    "tags": Gathered(1, [TagExample("1", ("a", "b"), ("O", "B-X"))], None),
    "columns of tags": Gathered(0, [], TagPredictions(*[np.arange(2, dtype=np.int32)] * len(TagPredictions._fields))),
    "numbers of NumPy": Gathered(1, [], [np.float32(0.1), np.int64(3), True, None]),
}


@pytest.mark.parametrize("kind", PARTS)
def test_parts_are_read_as_they_were_written(kind):
    assert same(list(parts_of(stream(PARTS[kind], PARTS["options"]))), [PARTS[kind], PARTS["options"]])


def test_parts_in_any_order_are_measured_as_one():
    family = TASKS["MRPC"].family
    examples = [SentenceExample(str(n), "", "", str(n % 2)) for n in range(7)]
    logits = np.random.default_rng(1).normal(size=(7, 2)).astype(np.float32)
    parts = [Gathered(number, examples[a:b], logits[a:b]) for number, (a, b) in enumerate([(0, 2), (2, 5), (5, 7)])]
    whole = gathering.evaluation(parts_of(stream(Gathered(0, examples, logits))), family)
    gathered = gathering.evaluation(parts_of(stream(parts[2], parts[0], parts[1])), family)
    assert gathered.metrics == whole.metrics
    assert gathered.details() == whole.details()


@pytest.mark.parametrize(("firsts", "mrr"), [("abc", 1 / 2), ("aac", 5 / 6), ("aaa", 1)])
def test_texts_are_not_moved_but_told_apart(firsts, mrr):
    """Equal vectors: each other text is as near as the right one, unless it is right too."""
    pairs = [SentenceExample(str(n), text, second, BELONG) for n, (text, second) in enumerate(zip(firsts, "xyx"))]
    examples = list(map(gathering._without_texts, pairs))
    parts = parts_of(stream(Gathered(0, examples, np.ones((3, 2, 4), np.float32))))
    assert gathering.evaluation(parts, ContrastiveFamily()).metrics["mrr"] == pytest.approx(mrr)
    assert {*"abcxy"}.isdisjoint(text for example in examples for text in (example.text_a, example.text_b))


class Runs:
    def __reduce__(self):
        return print, ("this ran",)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Gathered(0, [], Runs())),
        b'{"record": ["subprocess", "Popen"], "values": [["true"]]}',
        b'{"record": ["os", "system"], "values": ["true"]}',
        b'{"record": ["no.such", "Module"], "values": []}',
        b'{"array": "AAAA", "type": "|O", "shape": [1]}',
        b'{"eval": ["1"]}',
    ],
    ids=["pickle", "class", "function", "module", "objects", "kind"],
)
def test_what_somebody_else_put_there_is_not_run(data, capsys):
    with pytest.raises((ValueError, KeyError)):
        list(parts_of(io.BytesIO(struct.pack("<Q", len(data)) + data)))
    assert capsys.readouterr().out == ""
