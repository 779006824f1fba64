import contextlib
import dataclasses
import threading

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.errors import CheckpointError, OutputError, TrainingError
from bert_tf.estimator.forward import Forward, Tower
from bert_tf.estimator.model_fn import Model
from bert_tf.features.batching import Batching
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine, Plan
from tests.estimator import toy
from tests.labelled import relabelled
from tests.tiny import random_weights

pytestmark = pytest.mark.versions

CPUS = tuple(f"/device:CPU:{number}" for number in range(3))
EXAMPLES = toy.features(13, seed=1)


def write(folder, step, **changed):
    """A checkpoint of a trained model, other weights at every step, and the list that names it; None leaves an entry out."""
    head = np.random.default_rng(step).normal(0, 0.5, (2, 8)).astype(np.float32)
    entries = {
        **random_weights(toy.CONFIG, seed=step),
        "output_weights": head,
        "output_bias": np.zeros(2, np.float32),
        "output_bias/adam_m": np.ones(2, np.float32),
        "global_step": np.int64(step),
        **changed,
    }
    prefix = folder / f"model.ckpt-{step}"
    write_checkpoint(prefix, {name: value for name, value in entries.items() if value is not None})
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{prefix.name}"\n')
    return str(prefix)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    return [write(folder, step) for step in (4, 7)]


@pytest.fixture(scope="module")
def forward():
    made = toy.make_forward()
    yield made
    made.close()


@pytest.fixture(scope="module")
def on_three_devices():
    config = session_config()
    config.device_count["CPU"] = len(CPUS)
    made = toy.make_forward(machine=Machine(config, Plan("mirrored", CPUS)))
    yield made
    made.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Logits of the second checkpoint, of each example alone."""
    folder = tmp_path_factory.mktemp("alone")
    write(folder, 7)
    return toy.logits_alone(folder, EXAMPLES)


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 1}, {"batch_size": 5}, {"batching": Batching(pad_to=15, multiple=16)}],
    ids=["default", "1", "5", "padded"],
)
def test_logits_are_those_of_each_example_alone_in_the_order_of_the_examples(forward, checkpoints, expected, settings):
    forward.load(checkpoints[1])
    assert list(EXAMPLES.lengths) != sorted(EXAMPLES.lengths, reverse=True)
    logits = forward.outputs(EXAMPLES, **settings)["logits"]
    np.testing.assert_allclose(logits, expected, atol=1e-6)
    other = relabelled(EXAMPLES, np.full(13, 0.25, np.float32))  # labels are not looked at
    np.testing.assert_array_equal(forward.outputs(other, **settings)["logits"], logits)


def test_weights_are_exchanged_and_nothing_is_left_of_those_before(forward, checkpoints):
    first, second, again = (
        (forward.load(prefix), forward.outputs(EXAMPLES)["logits"]) for prefix in [*checkpoints, checkpoints[0]]
    )
    assert [step for step, _ in (first, second, again)] == [4, 7, 4]
    np.testing.assert_array_equal(first[1], again[1])
    assert np.abs(first[1] - second[1]).max() > 0.01


def test_a_checkpoint_without_a_step_has_step_0(forward, tmp_path):
    assert forward.load(write(tmp_path, 4, global_step=None)) == 0


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"output_bias": None}, "output_bias is missing; is it of another model or task?"),
        ({"output_bias": np.zeros(3, np.float32)}, r"output_bias is \[3\], expected \[2\]; is it of another model or task?"),
    ],
)
def test_weights_of_another_model_are_refused(forward, tmp_path, changed, problem):
    with pytest.raises(CheckpointError, match=f"^{tmp_path}/model.ckpt-4: {problem}"):
        forward.load(write(tmp_path, 4, **changed))


@pytest.mark.parametrize("engine", ["forward", "on_three_devices"])
def test_a_damaged_checkpoint_is_named(request, engine, tmp_path):
    prefix, engine = write(tmp_path, 4), request.getfixturevalue(engine)
    data = tmp_path / "model.ckpt-4.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=f"^{prefix}: damaged at [a-z_/]+: Read less bytes than requested"):
        engine.load(prefix)
    data.unlink()
    with pytest.raises(CheckpointError, match=f"^{prefix}: damaged at .*No such file or directory"):
        engine.load(prefix)


def test_what_is_saved_is_what_was_loaded_without_moments(forward, checkpoints, tmp_path):
    forward.load(checkpoints[0])
    forward.save(tmp_path / "model.ckpt-4")
    saved, loaded = (CheckpointReader(prefix) for prefix in (tmp_path / "model.ckpt-4", checkpoints[0]))
    assert saved.shapes.keys() == loaded.shapes.keys() - {"output_bias/adam_m"}
    assert all(saved[name].tobytes() == loaded[name].tobytes() for name in saved.shapes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index"]


def test_what_fails_on_the_way_is_named(forward, checkpoints, tmp_path, monkeypatch):
    def failing(message):
        def fail(*_, **__):
            raise tf.errors.ResourceExhaustedError(None, None, message)

        monkeypatch.setattr(tf.compat.v1.Session, "run", fail)

    forward.load(checkpoints[0])
    failing("model.ckpt-4; No space left on device")
    with pytest.raises(OutputError, match=f"^{tmp_path}: cannot write: model.ckpt-4; No space left on device"):
        forward.save(tmp_path / "model.ckpt-4")
    failing("OOM when allocating")
    with pytest.raises(TrainingError, match="out of memory; lower --eval_batch_size, --predict_batch_size or --max_seq_length"):
        forward.outputs(EXAMPLES)


@pytest.mark.parametrize("batch_size", [None, 1, 5])
def test_several_devices_change_no_bit(forward, on_three_devices, checkpoints, batch_size):
    """13 rows in one batch, which leaves two devices without; in 13; in 3 of 5, 5 and 3."""
    for checkpoint in (*checkpoints, checkpoints[0]):
        assert on_three_devices.load(checkpoint) == forward.load(checkpoint)
        actual, expected = (engine.outputs(EXAMPLES, batch_size=batch_size)["logits"] for engine in (on_three_devices, forward))
        assert actual.tobytes() == expected.tobytes()


def together(monkeypatch, count, action):
    """Lets towers compute when as many are about to, and each has done something."""
    barrier, compute = threading.Barrier(count, timeout=60), Tower.outputs

    def outputs(tower, *arguments):
        barrier.wait()
        action(tower)
        return compute(tower, *arguments)

    monkeypatch.setattr(Tower, "outputs", outputs)


def test_a_cpu_computes_two_batches_at_a_time_which_changes_no_bit(forward, checkpoints, monkeypatch):
    forward.load(checkpoints[1])
    rows = toy.features(12, seed=1)  # an even number
    alone = forward.outputs(rows, batch_size=1)["logits"]
    together(monkeypatch, 2, lambda _: None)
    np.testing.assert_array_equal(forward.outputs(rows, batching=Batching(eval_tokens=1))["logits"], alone)


def test_each_device_computes_with_weights_of_its_own(on_three_devices, checkpoints, monkeypatch):
    asked = []

    def note(tower):
        asked.append({op.device for op in tower.graph.get_operations() if op.type in ("MatMul", "VarHandleOp")})

    on_three_devices.load(checkpoints[0])
    together(monkeypatch, len(CPUS), note)
    on_three_devices.outputs(EXAMPLES, batch_size=5)
    assert sorted(asked, key=sorted) == [{device} for device in CPUS]


def test_a_device_that_fails_ends_what_all_compute(on_three_devices, checkpoints, monkeypatch):
    def fail(tower):
        if tower is on_three_devices._towers[2]:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    on_three_devices.load(checkpoints[0])
    together(monkeypatch, len(CPUS), fail)
    with pytest.raises(TrainingError, match="^out of memory; lower --eval_batch_size"):
        on_three_devices.outputs(EXAMPLES, batch_size=5)


MASKED_WORDS = HeadSpec(2, PRETRAINING, (("next_sentence", False),))


@pytest.fixture(scope="module")
def of_two_heads(tmp_path_factory):
    """A checkpoint that has the weights of two heads."""
    shapes = heads.make_head(MASKED_WORDS).variables(toy.CONFIG)
    drawn = {name: np.random.default_rng(3).normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    return write(tmp_path_factory.mktemp("two"), 9, **drawn)


def masked(rows):
    """Examples of which the first word of each row is asked for."""
    fields, slots = heads.make_head(MASKED_WORDS).inputs[1:], np.ones(len(rows), np.int32)
    asked = {field.name: np.full(len(rows), number, np.int32) for number, field in enumerate(fields, 1)}
    return dataclasses.replace(rows, targets=asked, fields=fields, slots=slots)


@pytest.mark.parametrize("devices", [None, Machine(session_config(), Plan("mirrored", CPUS[:1] * 2))])
def test_a_head_that_is_added_computes_what_it_does_alone(of_two_heads, devices):
    rows = masked(EXAMPLES)
    with contextlib.closing(Forward(Model(toy.CONFIG, MASKED_WORDS), Machine(session_config()))) as alone:
        alone.load(of_two_heads)
        expected = alone.outputs(rows)
    with contextlib.closing(toy.make_forward(devices)) as both:
        both.load(of_two_heads)
        before = both.outputs(EXAMPLES)["logits"]
        both.add(MASKED_WORDS)
        assert both.not_finite() == []
        added = both.outputs(rows, MASKED_WORDS)
        np.testing.assert_array_equal(both.outputs(EXAMPLES)["logits"], before)
    assert added.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(added[name], expected[name])


def test_a_head_that_the_checkpoint_lacks_is_refused(checkpoints):
    with contextlib.closing(toy.make_forward()) as forward:
        forward.load(checkpoints[0])
        before = forward.outputs(EXAMPLES)["logits"]
        for _ in range(2):
            with pytest.raises(CheckpointError, match="cls/predictions/.* is missing; is it of another model or task"):
                forward.add(MASKED_WORDS)
        np.testing.assert_array_equal(forward.outputs(EXAMPLES)["logits"], before)
