"""Shards with the published fields, beside what TensorFlow writes and reads."""

import gzip
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import DataError, VocabularyError
from bert_tf.extensions.pretrain.corpus import records as module
from bert_tf.extensions.pretrain.corpus.masking import Masked
from bert_tf.extensions.pretrain.corpus.records import FIELDS, Records, framed, manifest_of, serialized
from bert_tf.extensions.pretrain.corpus.rows import Batch
from bert_tf.tokenization.vocabulary import Vocabulary
from tests.extensions.pretrain.corpus.conftest import TOKENS

# Two rows of 8 tokens with 3 places for masks.
IDS = np.array([[2, 6, 4, 3, 8, 3, 0, 0], [2, 4, 7, 3, 9, 4, 4, 3]], np.int32)
MASK = (IDS > 0).astype(np.int32)
SEGMENTS = np.array([[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]], np.int32)
MASKED = Masked(IDS, np.array([1, 3], np.int32), np.array([[2, 0, 0], [1, 5, 6]]), np.array([[9, 0, 0], [20, 7, 8]]))
LABELS = np.array([1, 0], np.int32)


def values(row):
    """Returns a row as the published script has it."""
    weights = [1.0] * int(MASKED.slots[row]) + [0.0] * (3 - int(MASKED.slots[row]))
    columns = IDS, MASK, SEGMENTS, MASKED.positions, MASKED.ids
    return dict(zip(FIELDS, [*(column[row].tolist() for column in columns), weights, [int(LABELS[row])]]))


def example(fields):
    made = {}
    for name, of in fields.items():
        floats = isinstance(of[0], float)
        kind = {"float_list": tf.train.FloatList(value=of)} if floats else {"int64_list": tf.train.Int64List(value=of)}
        made[name] = tf.train.Feature(**kind)
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def shard(folder, *examples, name="x.tfrecord"):
    """Writes examples as the published script does."""
    path = str(folder / name)
    with tf.io.TFRecordWriter(path) as writer:
        for one in examples or map(example, map(values, range(2))):
            writer.write(one)
    return path


@pytest.fixture
def opened(tmp_path, tokenizer):
    def open_shards(*paths, vocabulary=tokenizer.vocabulary):
        return Records.open(paths, vocabulary, folder=tmp_path / "index")

    return open_shards


def test_writes_what_tensorflow_reads(tmp_path):
    batch = Batch(IDS, MASK, SEGMENTS)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(map(framed, serialized(batch, MASKED, LABELS, max_predictions=3))))
    examples = [tf.train.Example.FromString(one.numpy()) for one in tf.data.TFRecordDataset(str(path))]
    assert examples == [tf.train.Example.FromString(example(values(row))) for row in range(2)]
    (one, _) = serialized(batch, MASKED, LABELS, max_predictions=5)  # places for masks are padded
    feature = tf.train.Example.FromString(one).features.feature
    assert list(feature["masked_lm_weights"].float_list.value) == [1, 0, 0, 0, 0]
    assert list(feature["masked_lm_positions"].int64_list.value) == [2, 0, 0, 0, 0]


def test_reads_what_the_published_script_writes(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1)
    damaged = {**values(1), "segment_ids": [1, 0, 0, 0, 0, 0, 0, 0]}
    records = opened(shard(tmp_path), shard(tmp_path, example(values(1)), example(damaged), name="y.tfrecord"))
    assert (len(records), records.seq_length, records.max_predictions) == (4, 8, 3)
    rows = records.read_rows(np.array([2, 0]))
    expected = IDS, MASK, SEGMENTS, MASKED.slots, MASKED.positions, MASKED.ids, LABELS
    assert [column.tolist() for column in rows] == [column[[1, 0]].tolist() for column in expected]
    assert {column.dtype for column in rows} == {np.dtype(np.int32)}
    with pytest.raises(DataError, match=r"y\.tfrecord: row 2: segment_ids"):  # rows are counted in each file
        records.read_rows(np.array([3]))


def changed(**fields):
    return example({**values(0), **fields})


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (changed(segment_ids=[0] * 7), "row 2: segment_ids: expected length 8, as in the first row, found 7"),
        (changed(masked_lm_weights=[0.0, 1.0, 0.0]), "row 2: masked_lm_weights: expected ones, then zeros"),
        (changed(masked_lm_weights=[0.5, 0.0, 0.0]), "row 2: masked_lm_weights: expected ones, then zeros"),
        (changed(input_mask=[1, 1, 1, 0, 1, 1, 0, 0]), "row 2: input_mask: expected ones, then zeros"),
        (changed(segment_ids=[0, 0, 0, 0, 1, 2, 0, 0]), "row 2: segment_ids: expected zeros, then ones"),
        (changed(segment_ids=[0, 1, 0, 0, 1, 1, 0, 0]), "row 2: segment_ids: expected zeros, then ones"),
        (changed(segment_ids=[0, 0, 0, 0, 1, 1, 1, 1]), "row 2: segment_ids: expected zeros, then ones"),
        (changed(next_sentence_labels=[2]), "row 2: next_sentence_labels: expected 0 or 1, found 2"),
        (changed(masked_lm_positions=[6, 0, 0]), "row 2: masked_lm_positions lie in padding"),
        (changed(masked_lm_ids=[99, 0, 0]), "row 2 was made with another vocabulary"),
        (changed(input_ids=[101, *IDS[0, 1:].tolist()]), "row 2 was made with another vocabulary"),
        (example({"label": [1]}), "row 2: has no input_ids; is this pre-training data"),
        (b"\xff\xff", "row 2: is not a tf.train.Example"),
    ],
)
def test_names_a_row_that_cannot_be_used(tmp_path, opened, second, said):
    records = opened(shard(tmp_path, example(values(0)), second))
    with pytest.raises(DataError, match=f"x.tfrecord: {said}"):
        records.read_rows(np.array([1]))


def test_names_a_shard_that_is_damaged_missing_or_of_another_vocabulary(tmp_path, opened, tokenizer):
    path = tmp_path / "x.tfrecord"
    with pytest.raises(DataError, match="cannot read the file: No such file"):
        opened(str(path))
    for data, message in (
        (b"one two three four", "row 1 does not begin at byte 0; is it a TFRecord file"),
        (gzip.compress(bytes(99), mtime=0), "it is compressed; unpack it"),
        (b"", "there are no rows"),
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match=message):
            opened(str(path))
    shard(tmp_path)
    whole = path.read_bytes()
    for cut in (1, 5, 300):
        path.write_bytes(whole[:-cut])
        with pytest.raises(DataError, match=r"x.tfrecord: cut off in row [12], which begins at byte \d+"):
            opened(str(path))
    path.write_bytes(whole[:-10] + bytes([whole[-10] ^ 1]) + whole[-9:])
    with pytest.raises(DataError, match="row 2: its checksum is wrong"):
        opened(str(path)).read_rows(np.array([1]))
    path = shard(tmp_path, name="x-00000-of-00002.tfrecord")
    manifest = manifest_of(path)
    assert manifest.name == "x.tfrecord.json"
    for noted in ({"vocabulary": tokenizer.vocabulary.fingerprint}, {"source": "a file of the user's own"}):
        manifest.write_text(json.dumps(noted))
        assert len(opened(path)) == 2
    manifest.write_text(json.dumps({"vocabulary": tokenizer.vocabulary.fingerprint}))
    with pytest.raises(VocabularyError, match="it was made with another vocabulary"):
        opened(path, vocabulary=Vocabulary([*TOKENS, "k"]))
