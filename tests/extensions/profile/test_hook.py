import dataclasses
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import OutputError
from bert_tf.estimator import run, stamps
from bert_tf.estimator.saver import CheckpointHook
from bert_tf.extensions.profile import OPERATIONS, StepRange, hook, matmul_peak, operations_file, time_tables
from bert_tf.extensions.profile.hook import Profiled, ProfileHook
from bert_tf.features.batching import Schedule
from bert_tf.modeling.execution import Execution
from bert_tf.profiling import wall_clock
from tests.estimator import toy
from tests.estimator.test_hooks import take_steps

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1

SCHEDULE = Schedule(24, 4, 2)  # 12 steps
SAVING = 2.0  # seconds, much longer than a step on a busy machine
TOKENS = 12  # of the longest text of `toy.features`


@pytest.fixture(scope="module", autouse=True)
def _small_peak():
    """The peak of small matrices, which takes no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matmul_peak, "_CHAINS", {kind: ((32, (32, 32)),) for kind in ("CPU", "GPU")})
        patch.setattr(matmul_peak, "_SECONDS", 0.002)
        yield


def record(folder, steps, *, environment=None, schedule=SCHEDULE, data=None, save_every=1000, copies=False, **model):
    hook = ProfileHook(folder, StepRange(*steps), copies=copies, environment=environment or {})
    estimator = toy.make_estimator(folder, schedule=schedule, **model)
    training = run.Training(schedule, save_checkpoints_steps=save_every, log_every_n_steps=1)
    run.train(estimator, data or toy.features(24), training, seed=toy.SEED, watchers=[hook])
    return folder / "profile"


def small_run(hook, start, steps):
    """Steps of a graph that has nothing but what the hook looks for."""

    def build(_):
        loss = tf.random.uniform([])
        stamps.mark(stamps.BATCH)
        stamps.mark_done(stamps.GRADIENTS, loss, after=[])
        for name in (stamps.BATCH, stamps.GRADIENTS):
            stamps.gate(name, [loss])

    take_steps([hook], start=start, until=start + steps, build=build)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Steps 4 to 6; the last is followed by a checkpoint that takes its time."""
    save = CheckpointHook._save

    def slow(self, session, step):
        if step == 6:
            time.sleep(SAVING)
        return save(self, session, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointHook, "_save", slow)
        return record(tmp_path_factory.mktemp("profile"), (4, 6), save_every=6)


def test_what_is_recorded_is_where_tensorboard_and_chrome_look_for_it(recorded):
    (profile,) = recorded.glob("plugins/profile/*/*.xplane.pb")
    assert b"MatMul" in profile.read_bytes()
    events = json.loads((recorded / "chrome_trace_step6.json").read_text())["traceEvents"]
    assert "IteratorGetNext" in {event["name"] for event in events}


def test_the_phases_of_the_recorded_steps_are_measured(recorded):
    phases = json.loads((recorded / "phases.json").read_text())
    assert phases.pop("steps") == 3
    assert list(phases) == ["data", "forward", "backward", "optimizer", "batch"]
    assert min(phases.values()) > 0
    batch = phases.pop("batch")
    assert 0.3 * batch < sum(phases.values()) <= batch  # the phases follow each other within it
    assert batch < SAVING / 3  # what passes between steps is no part of it
    timing = json.loads((recorded.parent / "timing.json").read_text())
    assert (timing["first_steps"], timing["traced_steps"], timing["steps"]) == (5, 1, 6)  # of 12; 6 is recorded


def test_a_batch_that_goes_to_a_device_has_a_phase_for_it_also_under_nsight_systems(tmp_path, recorded, monkeypatch):
    """No GPU is at hand: the stamp is added as for one, and the losses stay those of a run without it."""
    monkeypatch.setattr(hook, "_TRACED", 2)
    folder = record(tmp_path, (3, 6), copies=True, environment={"NSYS_PROFILING_SESSION_ID": "1"})
    phases = json.loads((folder / "phases.json").read_text())
    parts = ["data", "copy to device", "forward", "backward", "optimizer"]
    assert set(phases) == {"steps", *parts, "batch"}
    # On a CPU nothing waits for the copy: it may end in a later phase, and phases then overlap.
    assert all(0 < phases[name] <= phases["batch"] for name in parts)
    copied, plain = ([line["loss"] for line in toy.metrics_lines(folder)] for folder in (tmp_path, recorded.parent))
    assert copied == pytest.approx(plain, rel=1e-5)
    # TensorFlow's profiler is left off, and of a long range the last steps are traced.
    assert sorted(path.name for path in folder.iterdir()) == ["chrome_trace_step6.json", "operations.json", "phases.json"]
    assert (phases["steps"], tables(folder)[0].steps) == (4, 2)


def test_the_copy_is_over_where_every_part_of_the_batch_has_a_reader():
    with tf.Graph().as_default() as graph:
        with tf.device("/device:CPU:0"):
            ids, mask, unread = (tf1.placeholder(tf.int32, name=name) for name in ("ids", "mask", "unread"))
        ids, mask, unread = stamps.gate(stamps.BATCH, [ids, mask, unread])
        with tf.device("/device:GPU:1"):
            tf.identity(ids)
        with tf.device("/device:GPU:0"):
            tf.identity(mask)
        assert unread.consumers() == []
        hook.mark_copied(graph)
        sums = graph.get_operation_by_name(hook.COPIED + stamps.RECEIVED).inputs
        assert [tensor.device for tensor in sums] == ["/device:GPU:1", "/device:GPU:0"]
        assert graph.get_operation_by_name(hook.COPIED).device == "/device:CPU:0"


def tables(folder):
    profile = operations_file.read_record(folder / "operations.json")
    return profile, time_tables.op_table(profile)


def encoder_flops(tokens, micro_batches=1):
    """Products of a layer of the toy, by hand, with all rows of a padded batch and nothing left out."""
    b, d, i = 4 // micro_batches, toy.CONFIG.hidden_size, toy.CONFIG.intermediate_size
    dense = 4 * 2 * b * tokens * d * d + 2 * 2 * b * tokens * d * i  # query, key, value, output; intermediate, output
    return micro_batches * (dense + 2 * 2 * b * tokens * tokens * d)  # scores and context


def products_of_encoder(rows, phase):
    return sum(row.gflop or 0 for row in rows if row.scope[:2] == ("bert", "encoder") and row.phase == phase) * 1e9


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_operations_of_the_encoder_are_those_counted_by_hand(tmp_path, micro_batches):
    plain = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)  # nothing is left out
    ids = np.tile(np.array([2, 5, 7, 3, *range(8, 8 + TOKENS - 5), 3], np.int32), 24)
    data = dataclasses.replace(toy.features(24), token_ids=ids, lengths=np.full(24, TOKENS, np.int32))
    folder = record(tmp_path, (3, 5), execution=plain, micro_batches=micro_batches, data=data)
    recorded_steps, rows = tables(folder)
    assert recorded_steps.steps == 3
    assert products_of_encoder(rows, "forward") == pytest.approx(encoder_flops(TOKENS, micro_batches))
    # Each product has two for its gradients.
    assert products_of_encoder(rows, "backward") == pytest.approx(2 * encoder_flops(TOKENS, micro_batches))
    assert {row.calls for row in rows if row.gflop and row.scope[:2] == ("bert", "encoder")} == {micro_batches}
    passes = ["forward", "backward"] if micro_batches == 1 else ["forward and backward"]  # they take turns in one phase
    assert list(json.loads((folder / "phases.json").read_text())) == ["steps", "data", *passes, "optimizer", "batch"]


@pytest.mark.parametrize("steps", [(10, 20), (30, 40)])
def test_a_run_that_is_too_short_says_so(tmp_path, caplog, steps):
    with caplog.at_level("WARNING", logger="absl"):
        small_run(ProfileHook(tmp_path, StepRange(*steps), environment={}), start=0, steps=12)
    assert "--profile_steps: the record is incomplete, the run ended with step 12" in caplog.text
    small_run(ProfileHook(tmp_path / "again", StepRange(2, 3), environment={}), start=0, steps=3)
    assert list((tmp_path / "again").glob("profile/plugins/profile/*/*.xplane.pb"))  # the profiler was let go


def test_a_run_that_goes_on_records_nothing_of_the_step_that_builds(tmp_path, caplog):
    with caplog.at_level("INFO", logger="absl"):
        small_run(ProfileHook(tmp_path, StepRange(4, 7), environment={}), start=4, steps=4)
    assert json.loads((tmp_path / "profile" / "phases.json").read_text())["steps"] == 2
    assert "steps 6 to 7 are recorded" in caplog.text
    small_run(ProfileHook(tmp_path, StepRange(4, 5), environment={}), start=4, steps=1)
    assert "nothing to record, the run starts with step 5" in caplog.text


def test_a_record_that_cannot_be_written_does_not_end_training(tmp_path, monkeypatch, caplog):
    def refuse(path, _text):
        raise OutputError(f"{path}: cannot write: No space left on device")

    monkeypatch.setattr(hook.atomic, "write_text", refuse)
    small_run(ProfileHook(tmp_path, StepRange(2, 3), environment={}), start=0, steps=5)
    assert "--profile_steps: the record is incomplete: " in caplog.text
    assert caplog.text.count("the record is incomplete") == 1


def test_a_profile_that_tensorflow_cannot_write_does_not_end_training(tmp_path, caplog):
    (tmp_path / "profile").write_text("in the way")
    small_run(ProfileHook(tmp_path, StepRange(2, 3), environment={}), start=0, steps=5)
    assert f"TensorFlow's profile is not in {tmp_path}/profile: " in caplog.text


def test_a_folder_that_holds_more_than_a_record_is_not_replaced(recorded):
    assert list(Profiled(None).check(SimpleNamespace(output_dir=recorded.parent))) == []
    (recorded / "profiles.py").touch()
    (problem,) = Profiled(None).check(SimpleNamespace(output_dir=recorded.parent))
    assert problem == f"--profile_steps would replace {recorded}, which holds 'profiles.py'; name another --output_dir"
    (recorded / "profiles.py").unlink()


def test_tables_of_a_real_run_agree_with_each_other(recorded):
    profile, rows = tables(recorded)
    model = time_tables.model_table(profile, rows)
    assert model.total.time_us == pytest.approx(sum(row.time_us for row in rows if not row.waits))
    assert all(o.calls * o.min_us - 0.01 <= o.total_us <= o.calls * o.max_us + 0.01 for o in profile.operations)  # are rounded
    assert model.step_us == pytest.approx(1e6 * json.loads((recorded / "phases.json").read_text())["batch"])
    assert all(row.sizes for row in rows if "MatMul" in row.type)  # none of unknown size
    assert set(model.matmul_peak_gflops) == {"float32"}
    paths = {row.path for row in time_tables.group_table(rows, 5)}  # scopes of variables
    assert {"bert/embeddings/LayerNorm", "bert/encoder/layer_0/attention/self", "bert/pooler/dense"} <= paths
    first = {path.split("/")[0] for path in paths if not path.startswith("(")}
    assert first == {"bert", "head", "output_bias", "output_weights", "watch"}


def test_a_program_that_profiles_already_is_recorded_without_tensorflows_profile(tmp_path, caplog):
    tf.profiler.experimental.start(str(tmp_path / "other"))
    try:
        small_run(ProfileHook(tmp_path, StepRange(2, 3), environment={}), start=0, steps=5)
    finally:
        tf.profiler.experimental.stop()
    assert "--profile_steps: TensorFlow's profile is left out: " in caplog.text
    assert (tmp_path / OPERATIONS).is_file()


def test_nsight_systems_without_nvtx_is_told_what_is_missing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(wall_clock.importlib.util, "find_spec", lambda _: None)
    ProfileHook(tmp_path, StepRange(1, 2), environment={"NSYS_PROFILING_SESSION_ID": "1"})
    assert "pip install nvtx" in caplog.text
