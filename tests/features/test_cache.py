import dataclasses
import hashlib
import json
import struct

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.errors import OutputError
from bert_tf.features.cache import CacheKey, examples_digest, load_or_build
from bert_tf.fields import Field
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.labelled import label_ids, labelled, relabelled

KEY = CacheKey("MRPC", "dev", ("0", "1"), "classification", "a" * 64, "b" * 64, True, 32, "truncate")
OTHER = {"task": "RTE", "split": "train", "labels": ("1", "0"), "kind": "multi_label", "examples": "c" * 64}
OTHER |= {"vocabulary": "d" * 64, "lower_case": False, "max_seq_length": 31, "long_text": "windows"}
OTHER["of_family"] = {"stride": 64}
FIELDS = (Field("label_ids"),)


def features(label=1):
    columns = ([2, 7, 3, 2, 3], [3, 2], [3, 2], [0, label])
    return labelled(*(np.array(column, np.int32) for column in columns), truncated=4)


def never():
    pytest.fail("the cache was not used")


@pytest.fixture
def stored(tmp_path):
    """A file of the cache, in a folder of its own."""
    load_or_build(tmp_path, KEY, FIELDS, features)
    (path,) = tmp_path.iterdir()
    return path


def rewrite(path, *, change=lambda _: None, **metadata):
    """Saves a valid file again, with other columns or metadata."""
    with safetensors.safe_open(path, framework="numpy") as file:
        kept = file.metadata()
        columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
    change(columns)
    path.write_bytes(safetensors.numpy.save(columns, metadata={**kept, **metadata}))


def test_the_first_call_builds_and_the_second_reads_the_same_features(tmp_path):
    folder = tmp_path / "new" / "folder"
    built, cached = load_or_build(folder, KEY, FIELDS, features)
    assert (cached, built.token_ids.tolist()) == (False, [2, 7, 3, 2, 3])
    read, cached = load_or_build(folder, KEY, FIELDS, never)
    assert (cached, read.truncated) == (True, 4)
    for name, column in features().columns().items():
        np.testing.assert_array_equal(read.columns()[name], column)
        assert read.columns()[name].dtype == np.int32


@pytest.mark.parametrize("together", [False, True])
def test_windows_labels_of_any_kind_and_that_rows_stay_together_are_kept(tmp_path, together):
    windows = dataclasses.replace(features(), example_ids=np.array([0, 0], np.int32), together=together)
    made = relabelled(windows, np.array([[0, 1], [1, 1]], np.float32))
    load_or_build(tmp_path, KEY, made.fields, lambda: made)
    read, _ = load_or_build(tmp_path, KEY, made.fields, never)
    assert (read.examples, read.together, read.units) == (1, together, 1 if together else 2)
    assert (label_ids(read).tolist(), label_ids(read).dtype) == ([[0, 1], [1, 1]], np.float32)


def test_digests_do_not_depend_on_the_run():
    examples = [SentenceExample("1", "a\u00e9", "b", ("x", "y")), SentenceExample("2", "a", None, 0.5)]
    text = '["a\\u00e9", "b", ["x", "y"]]\n["a", null, 0.5]\n'
    assert examples_digest(examples) == hashlib.sha256(text.encode()).hexdigest()
    values = {name: value for name, value in dataclasses.asdict(KEY).items() if name != "of_family"}  # which is empty
    assert KEY.digest == hashlib.sha256(json.dumps(["3", values], sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("field", [*(field.name for field in dataclasses.fields(CacheKey)), "the version of the format"])
def test_another_value_of_any_field_is_a_miss_and_does_not_replace_the_first(stored, field):
    with pytest.MonkeyPatch.context() as patch:
        if field in OTHER:
            key = dataclasses.replace(KEY, **{field: OTHER[field]})
        else:
            key = KEY
            patch.setattr("bert_tf.features.cache.FORMAT_VERSION", "0")
        assert not load_or_build(stored.parent, key, FIELDS, features)[1]
    assert load_or_build(stored.parent, KEY, FIELDS, never)[1]


def flipped(position):
    def flip(data):
        changed = bytearray(data)
        changed[position] ^= 1
        return bytes(changed)

    return flip


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda data, size=size: data[:size] for size in (0, 7, 8, 100, -1)),
        *(lambda _, new=new: new for new in (b"\xff" * 500, b"{}", struct.pack("<Q", 2) + b"{}", b"\x00" * 64)),
        *map(flipped, (-1, -10, -40)),
        lambda _: safetensors.numpy.save(features().columns()),  # without metadata
        {"key": "0" * 64},
        {"truncated": ""},
        {"truncated": "many"},
        {"change": lambda columns: columns.pop("lengths")},
        {"change": lambda columns: columns.update(more=np.zeros(2, np.int32))},
    ],
)
def test_a_damaged_or_foreign_file_is_rebuilt(stored, damage):
    if isinstance(damage, dict):
        rewrite(stored, **damage)
    else:
        stored.write_bytes(damage(stored.read_bytes()))
    read, cached = load_or_build(stored.parent, KEY, FIELDS, lambda: features(label=0))
    assert (cached, label_ids(read).tolist()) == (False, [0, 0])
    again, cached = load_or_build(stored.parent, KEY, FIELDS, never)
    assert (cached, label_ids(again).tolist()) == (True, [0, 0])


def test_what_is_in_the_place_of_file_or_folder_is_named(stored, tmp_path):
    stored.unlink()
    stored.mkdir()
    with pytest.raises(OutputError, match="cannot write: Is a directory"):
        load_or_build(stored.parent, KEY, FIELDS, features)
    (tmp_path / "features").write_text("")
    with pytest.raises(OutputError, match=r"features/MRPC-dev-.*: cannot write: (Not a directory|File exists)"):
        load_or_build(tmp_path / "features", KEY, FIELDS, features)
