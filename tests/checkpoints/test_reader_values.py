import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, as_float32, problem_of_saved, problem_of_weights, write_checkpoint
from bert_tf.errors import CheckpointError

pytestmark = pytest.mark.versions

HALF = pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float64], ids=lambda kind: kind.__name__)


def write(folder, **entries):
    """Writes a checkpoint of two good weights, a step, and others; returns its prefix."""
    good = {"a": np.ones([2, 3], np.float32), "b": np.zeros(2, np.float32), "global_step": np.int64(7)}
    write_checkpoint(folder / "x", {**good, **entries})
    return str(folder / "x")


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


def test_a_checkpoint_whose_path_is_a_pattern_for_tensorflow_is_read_from_its_project_alone(tmp_path, monkeypatch):
    (tmp_path / "[nlp]" / "run").mkdir(parents=True)
    prefix = write(tmp_path / "[nlp]" / "run")
    with pytest.raises(CheckpointError, match=r"x: TensorFlow treats \* \? \[ in a path as a pattern; rename it, or work in"):
        CheckpointReader(prefix)
    monkeypatch.chdir(tmp_path / "[nlp]")
    with as_float32(prefix) as same:
        assert same == "run/x"
        (read,) = tf.raw_ops.RestoreV2(prefix=same, tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float32])
    np.testing.assert_array_equal(read, np.ones([2, 3]))


@HALF
def test_training_goes_on_in_float32_alone(tmp_path, kind):
    said = problem_of_saved(write(tmp_path, b=np.zeros(2, kind)))
    assert said == f"{tmp_path}/x: training saves float32, but this holds b ({np.dtype(kind).name})"


INFINITE = "weights that are NaN or infinite: "


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({}, None),
        *(
            ({"b": np.float32([0, value]), "c": np.float32([value])}, f"{INFINITE}b, c; take another checkpoint")
            for value in (np.nan, np.inf, -np.inf)
        ),
        ({"b": np.float64([1e300, 0])}, f"{INFINITE}b; take another checkpoint"),  # float32 does not hold it
        (
            {f"n{number}": np.float32([np.nan]) for number in range(5)},
            f"{INFINITE}n0, n1, n2 and 2 more; take another checkpoint",
        ),
        *(
            ({"b": np.zeros(2, kind)}, f"weights that are not floating-point numbers: b ({name}); take another checkpoint")
            for kind, name in ((np.int32, "int32"), (np.int8, "int8"), (bool, "bool"), (np.complex64, "complex64"))
        ),
    ],
)
def test_unusable_weights_are_named(tmp_path, entries, said):
    prefix = write(tmp_path, **entries)
    reader = CheckpointReader(prefix)
    expected = said and f"{prefix}: {said}"
    assert problem_of_weights(reader, sorted(reader.shapes.keys() - {"global_step"})) == expected
    if all(value.dtype == np.float32 for value in entries.values()):
        assert problem_of_saved(prefix) == expected
    if said is None:
        with as_float32(prefix) as same:
            assert same == prefix
