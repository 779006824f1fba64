from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.values import as_float32, problem_of_saved, problem_of_weights
from bert_tf.errors import CheckpointError

HALF = pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float64], ids=lambda kind: kind.__name__)


def write(folder, **entries):
    """Writes a checkpoint of two good weights, a step, and others; returns its prefix."""
    good = {"a": np.ones([2, 3], np.float32), "b": np.zeros(2, np.float32), "global_step": np.int64(7)}
    write_checkpoint(folder / "x", {**good, **entries})
    return str(folder / "x")


def problem(folder, **entries):
    reader = CheckpointReader(write(folder, **entries))
    return problem_of_weights(reader, sorted(reader.shapes.keys() - {"global_step"}))


def test_finite_floats_have_no_problem(tmp_path):
    assert problem(tmp_path) is None
    assert problem_of_saved(str(tmp_path / "x")) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(tmp_path, value):
    said = f"{tmp_path}/x: weights that are NaN or infinite: b, c; take another checkpoint"
    assert problem(tmp_path, b=np.float32([0, value]), c=np.float32([value])) == said
    assert problem_of_saved(str(tmp_path / "x")) == said


def test_of_many_the_first_are_named(tmp_path):
    bad = {f"n{number}": np.float32([np.nan]) for number in range(5)}
    assert problem(tmp_path, **bad).endswith("NaN or infinite: n0, n1, n2 and 2 more; take another checkpoint")


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int8, bool, np.complex64])
def test_weights_that_are_no_floats_are_named_with_their_type(tmp_path, kind):
    said = problem(tmp_path, b=np.zeros(2, kind))
    assert (
        said == f"{tmp_path}/x: weights that are not floating-point numbers: b ({np.dtype(kind).name}); take another checkpoint"
    )


def test_numbers_that_float32_does_not_hold_are_infinite(tmp_path):
    assert "NaN or infinite: b" in problem(tmp_path, b=np.float64([1e300, 0]))


@HALF
def test_other_floats_are_converted_for_the_block(tmp_path, kind):
    prefix = write(tmp_path, b=np.array([0.5, 2.0], kind), c=np.array([b"text"], object))
    with as_float32(prefix) as copy:
        reader = CheckpointReader(copy)
        assert {reader[name].dtype.name for name in ("a", "b")} == {"float32"}
        np.testing.assert_array_equal(reader["b"], [0.5, 2.0])
        assert reader["global_step"] == 7
    with pytest.raises(CheckpointError, match="no checkpoint of this name"):
        CheckpointReader(copy)


def test_float32_is_used_as_it_is(tmp_path):
    prefix = write(tmp_path)
    with as_float32(prefix) as same:
        assert same == prefix


@HALF
def test_training_goes_on_in_float32_alone(tmp_path, kind):
    said = problem_of_saved(write(tmp_path, b=np.zeros(2, kind)))
    assert said == f"{tmp_path}/x: training saves float32, but this holds b ({np.dtype(kind).name})"
