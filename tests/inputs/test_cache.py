from __future__ import annotations

import dataclasses
import hashlib
import json
import struct

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.errors import OutputError
from bert_tf.fields import Field
from bert_tf.inputs.cache import CacheKey, examples_digest, load_or_build
from bert_tf.tasks.sentence.example import SentenceExample
from tests.labelled import label_ids, labelled, relabelled

KEY = CacheKey(
    task="MRPC",
    split="dev",
    labels=("0", "1"),
    kind="classification",
    examples="a" * 64,
    vocabulary="b" * 64,
    lower_case=True,
    max_seq_length=32,
    long_text="truncate",
)
OTHER = {
    "task": "RTE",
    "split": "train",
    "labels": ("1", "0"),
    "kind": "multi_label",
    "examples": "c" * 64,
    "vocabulary": "d" * 64,
    "lower_case": False,
    "max_seq_length": 31,
    "long_text": "windows",
    "of_family": {"stride": 64},
}


FIELDS = (Field("label_ids"),)
EXAMPLE = SentenceExample("1", "a", None, "1")


def features(label=1):
    return labelled(
        token_ids=np.array([2, 7, 3, 2, 3], np.int32),
        lengths=np.array([3, 2], np.int32),
        first_lengths=np.array([3, 2], np.int32),
        label_ids=np.array([0, label], np.int32),
        truncated=4,
    )


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


def assert_rebuilt(path):
    """The file is not used, and what replaces it is."""
    found, cached = load_or_build(path.parent, KEY, FIELDS, lambda: features(label=0))
    assert not cached
    assert label_ids(found).tolist() == [0, 0]
    again, cached = load_or_build(path.parent, KEY, FIELDS, never)
    assert cached
    assert label_ids(again).tolist() == [0, 0]


def test_the_first_call_builds(tmp_path):
    found, cached = load_or_build(tmp_path / "new" / "folder", KEY, FIELDS, features)
    assert not cached
    assert found.token_ids.tolist() == [2, 7, 3, 2, 3]


def test_the_second_call_reads_the_same_features(stored):
    found, cached = load_or_build(stored.parent, KEY, FIELDS, never)
    assert cached
    for name, column in features().columns().items():
        np.testing.assert_array_equal(found.columns()[name], column)
        assert found.columns()[name].dtype == np.int32


def test_windows_and_labels_of_any_kind_are_kept(tmp_path):
    windows = dataclasses.replace(features(), example_ids=np.array([0, 0], np.int32))
    made = relabelled(windows, np.array([[0, 1], [1, 1]], np.float32))
    load_or_build(tmp_path, KEY, made.fields, lambda: made)
    found, _ = load_or_build(tmp_path, KEY, made.fields, never)
    assert found.examples == 1
    assert (label_ids(found).tolist(), label_ids(found).dtype) == ([[0, 1], [1, 1]], np.float32)


@pytest.mark.parametrize(
    "other",
    [
        *([EXAMPLE], [EXAMPLE, EXAMPLE, EXAMPLE]),
        *([EXAMPLE, dataclasses.replace(EXAMPLE, **change)] for change in ({"text_a": "b"}, {"text_b": "a"}, {"label": "0"})),
    ],
)
def test_other_texts_or_labels_have_another_digest(other):
    assert examples_digest(other) != examples_digest([EXAMPLE, EXAMPLE])


def test_the_digest_is_that_of_a_line_for_each_example():
    examples = [SentenceExample("1", "a\u00e9", "b", ("x", "y")), SentenceExample("2", "a", None, 0.5)]
    text = '["a\\u00e9", "b", ["x", "y"]]\n["a", null, 0.5]\n'
    assert examples_digest(examples) == hashlib.sha256(text.encode()).hexdigest()


def test_the_number_of_truncated_examples_is_kept(stored):
    assert load_or_build(stored.parent, KEY, FIELDS, never)[0].truncated == 4


def test_every_field_of_the_key_is_tried():
    assert OTHER.keys() == {field.name for field in dataclasses.fields(CacheKey)}


@pytest.mark.parametrize("field", OTHER)
def test_another_value_of_any_field_is_a_miss(stored, field):
    key = dataclasses.replace(KEY, **{field: OTHER[field]})
    assert not load_or_build(stored.parent, key, FIELDS, features)[1]


@pytest.mark.parametrize("field", OTHER)
def test_features_of_another_key_do_not_replace_the_first(stored, field):
    load_or_build(stored.parent, dataclasses.replace(KEY, **{field: OTHER[field]}), FIELDS, features)
    assert load_or_build(stored.parent, KEY, FIELDS, never)[1]


def test_another_format_version_is_a_miss(stored, monkeypatch):
    monkeypatch.setattr("bert_tf.inputs.cache.FORMAT_VERSION", "0")
    assert not load_or_build(stored.parent, KEY, FIELDS, features)[1]


@pytest.mark.parametrize("size", [0, 7, 8, 100, -1])
def test_a_truncated_file_is_rebuilt(stored, size):
    stored.write_bytes(stored.read_bytes()[:size])
    assert_rebuilt(stored)


@pytest.mark.parametrize("content", [b"\xff" * 500, b"{}", struct.pack("<Q", 2) + b"{}", b"\x00" * 64])
def test_a_foreign_file_is_rebuilt(stored, content):
    stored.write_bytes(content)
    assert_rebuilt(stored)


@pytest.mark.parametrize("position", [-1, -10, -40])
def test_a_flipped_bit_in_the_numbers_is_noticed(stored, position):
    data = bytearray(stored.read_bytes())
    data[position] ^= 1
    stored.write_bytes(bytes(data))
    assert_rebuilt(stored)


def test_a_file_of_another_key_under_this_name_is_rebuilt(stored):
    rewrite(stored, key="0" * 64)
    assert_rebuilt(stored)


def test_a_missing_column_is_noticed(stored):
    rewrite(stored, change=lambda columns: columns.pop("lengths"))
    assert_rebuilt(stored)


def test_an_additional_column_is_noticed(stored):
    rewrite(stored, change=lambda columns: columns.update(more=np.zeros(2, np.int32)))
    assert_rebuilt(stored)


@pytest.mark.parametrize("truncated", ["", "many"])
def test_an_unreadable_count_is_rebuilt(stored, truncated):
    rewrite(stored, truncated=truncated)
    assert_rebuilt(stored)


def test_a_file_without_metadata_is_rebuilt(stored):
    stored.write_bytes(safetensors.numpy.save(features().columns()))
    assert_rebuilt(stored)


def test_a_folder_in_the_place_of_the_file_is_an_output_error(stored):
    stored.unlink()
    stored.mkdir()
    with pytest.raises(OutputError, match="cannot write: Is a directory"):
        load_or_build(stored.parent, KEY, FIELDS, features)


def test_a_failing_build_leaves_nothing(tmp_path):
    with pytest.raises(KeyError, match="no such label"):
        load_or_build(tmp_path, KEY, FIELDS, lambda: {}["no such label"])
    assert list(tmp_path.iterdir()) == []


def test_a_failing_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    with pytest.raises(
        OutputError, match="cannot write: No space left on device; free some space, or name another place; nothing was changed"
    ):
        load_or_build(tmp_path, KEY, FIELDS, features)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_rename_keeps_the_old_file_and_nothing_else(stored, monkeypatch):
    old = b"foreign, to be replaced"
    stored.write_bytes(old)

    def fail(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OutputError, match="Permission denied"):
        load_or_build(stored.parent, KEY, FIELDS, features)
    assert [(path, path.read_bytes()) for path in stored.parent.iterdir()] == [(stored, old)]


def test_a_file_where_the_folder_should_be_is_named(tmp_path):
    (tmp_path / "features").write_text("")
    with pytest.raises(OutputError, match=r"features/MRPC-dev-.*: cannot write: (Not a directory|File exists)"):
        load_or_build(tmp_path / "features", KEY, FIELDS, features)


def test_digests_do_not_depend_on_the_run():
    values = {name: value for name, value in dataclasses.asdict(KEY).items() if name != "of_family"}  # which is empty
    text = json.dumps(["2", values], sort_keys=True)
    assert KEY.digest == hashlib.sha256(text.encode()).hexdigest()


def test_that_rows_stay_together_is_kept(tmp_path):
    together = dataclasses.replace(features(), example_ids=np.array([0, 0], np.int32), together=True)
    load_or_build(tmp_path, KEY, FIELDS, lambda: together)
    found, cached = load_or_build(tmp_path, KEY, FIELDS, features)
    assert cached
    assert found.together
    assert found.units == 1
