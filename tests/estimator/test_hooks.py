import itertools
import os
import signal
from concurrent import futures
from types import SimpleNamespace

import pytest
import tensorflow as tf

from bert_tf.errors import LostPeerError
from bert_tf.estimator.hooks import EndHook, StopOnSignalHook, WatchHook
from bert_tf.estimator.progress_hook import ProgressHook, RatesHook, log_interval
from bert_tf.estimator.saver import CheckpointHook, SaverHook
from bert_tf.estimator.update import GRADIENT_NORM, LEARNING_RATE, LOSS, SKIPPED_STEPS, STOP, STOPS
from bert_tf.io import log_form
from tests.estimator import toy

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1


class FailAfter(tf1.train.SessionRunHook):
    """Fails after some steps."""

    def __init__(self, steps):
        self.left = steps

    def after_run(self, run_context, run_values):
        del run_context, run_values
        self.left -= 1
        if not self.left:
            raise RuntimeError("as if the machine had failed")


def take_steps(hooks, *, until=6, start=0, on_step=lambda _: None, build=lambda _: None):
    """Counts in a graph with what the hooks look for: the loss at step n is 1 / n; `build` adds to it, given the weight."""
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", initializer=1.0)
        moments = [tf1.get_variable(f"weight/{name}", initializer=0.0, trainable=False) for name in ("adam_m", "adam_v")]
        jump = step.assign(start)
        update = step.assign_add(1)
        tf.divide(1.0, tf.cast(update, tf.float32), name=LOSS)
        tf.constant(0.25, name=LEARNING_RATE)
        tf.constant(2.0, name=GRADIENT_NORM)
        build(weight)
        train = tf.group(update, weight.assign_add(1.0), *(m.assign_add(1.0) for m in moments))
        init = tf1.train.Scaffold(init_fn=lambda _, session: session.run(jump))
        with tf1.train.MonitoredSession(tf1.train.ChiefSessionCreator(init), hooks=hooks) as session:
            taken = start
            while taken < until and not session.should_stop():
                session.run(train)
                taken += 1
                on_step(taken)
    return taken


def listener(action):
    """Does something with the step of each checkpoint."""
    hears = tf1.train.CheckpointSaverListener()
    hears.after_save = lambda _, step: action(step)
    return hears


def signals(after, *numbers):
    """Sends signals to this process after a step."""

    def send(step):
        for number in numbers if step == after else ():
            os.kill(os.getpid(), number)

    return send


@pytest.fixture
def _two_seconds_a_look(monkeypatch):
    """A clock that has gone on by two seconds whenever somebody looks."""
    ticks = itertools.count(0.0, 2.0)
    monkeypatch.setattr(
        "bert_tf.estimator.progress_hook.time", SimpleNamespace(perf_counter=lambda: next(ticks), time=lambda: 0.0)
    )


def progress(folder, *, every=1, total=6):
    return ProgressHook(folder, units=lambda step: 4 * step, total_steps=total, every_n_steps=every)


def saver(folder, *every, total=6, **settings):
    return SaverHook(total_steps=total), CheckpointHook(folder, every_n_steps=every or [2], **settings)


def steps_on_disk(folder):
    return sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("model.ckpt-*.index"))


def test_a_report_has_what_was_watched_and_is_on_disk_and_in_tensorboard_at_once(tmp_path, capsys):
    seen = []
    take_steps([progress(tmp_path)], on_step=lambda _: seen.append(len(toy.metrics_lines(tmp_path))))
    assert seen == [1, 2, 3, 4, 5, 6]
    line = toy.metrics_lines(tmp_path)[3]
    assert line.pop("examples_per_second") > 0
    assert line.pop("host_memory_mb") > 100
    assert line == {"step": 4, "loss": 0.25, "learning_rate": 0.25, "gradient_norm": 2.0}
    tags = {"loss", "learning_rate", "gradient_norm", "examples_per_second", "host_memory_mb"}
    assert toy.summary_tags(tmp_path) == tags
    assert capsys.readouterr().err == ""  # no bar where the standard error is no terminal


def test_reports_come_at_multiples_and_at_the_end_and_the_log_says_how_far_it_is(tmp_path, caplog):
    with caplog.at_level("INFO"):
        take_steps([progress(tmp_path, every=4)])
    assert [line["step"] for line in toy.metrics_lines(tmp_path)] == [4, 6]
    assert "step 6 of 6: loss = 0.1667, lr = 0.25, examples/s = " in caplog.text


def test_skipped_steps_are_reported_where_there_are_any(tmp_path, caplog):
    with caplog.at_level("INFO"):
        build = lambda _: tf.multiply(tf1.train.get_global_step(), 2, name=SKIPPED_STEPS)  # noqa: E731
        take_steps([progress(tmp_path, every=6)], build=build)
    (line,) = toy.metrics_lines(tmp_path)
    assert line["skipped_steps"] in (10, 12)  # read before the step is counted, or after
    assert caplog.messages[-1].endswith(f", skipped steps = {line['skipped_steps']:.0f}")


@pytest.mark.usefixtures("_two_seconds_a_look")
def test_the_rate_counts_examples_since_the_last_report(tmp_path):
    take_steps([progress(tmp_path, every=3)])
    # 3 steps of 4 examples in 2 seconds; the start and each report look at the clock once.
    assert [line["examples_per_second"] for line in toy.metrics_lines(tmp_path)] == [6.0, 6.0]


@pytest.mark.usefixtures("_two_seconds_a_look")
@pytest.mark.parametrize(
    ("every", "expected"),
    [(1, ["global_step/sec: 0.5", "examples/sec: 4"] * 4), (3, ["global_step/sec: 1.5", "examples/sec: 12"])],
)
def test_rates_are_logged_as_the_published_script_does(caplog, every, expected):
    log_form.choose(log_form.PUBLISHED)
    hook = RatesHook(8, every_n_steps=every)
    hook.after_create_session(None, None)
    with caplog.at_level("INFO"):
        for _ in range(4):
            hook.after_run(None, None)
    assert caplog.messages == expected


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (19, 1), (59, 2), (331, 16), (917, 45), (36_000, 50)])
def test_a_run_reports_20_times_and_every_50_steps_at_least(steps, expected):
    assert log_interval(steps) == expected
    assert steps // log_interval(steps) >= min(steps, 20)


def test_a_pipe_in_the_place_of_the_log_does_not_hold_a_run_up(tmp_path, caplog):
    os.mkfifo(tmp_path / "metrics.jsonl")
    assert take_steps([progress(tmp_path, every=2)]) == 6
    assert any("metrics.jsonl: cannot write: it is a pipe" in message for message in caplog.messages)


def test_close_ends_the_line_of_the_bar_of_a_failed_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    hook = progress(tmp_path)
    hook.close()  # is harmless before the first step, and twice
    with pytest.raises(RuntimeError):
        take_steps([hook, FailAfter(2)])
    hook.close()
    hook.close()
    shown = capsys.readouterr().err
    assert "2/6" in shown
    assert shown.endswith("\n")


@pytest.mark.parametrize(
    ("every", "settings", "expected"),
    [((2,), {"until": 5}, [2, 4, 5]), ((2, 3), {}, [2, 3, 4, 6]), ((2,), {"start": 3}, [4, 6]), ((100,), {"until": 3}, [3])],
    ids=["at the end", "due for two reasons", "a run that continues", "not before the first step"],
)
def test_checkpoints_are_saved_on_the_way_and_at_the_end(tmp_path, every, settings, expected):
    steps = []
    take_steps([*saver(tmp_path, *every, listeners=[listener(steps.append)])], **settings)
    assert steps == steps_on_disk(tmp_path) == expected


def test_the_list_of_checkpoints_survives_a_move_of_the_folder_and_tensorboard_gets_the_graph(tmp_path):
    take_steps([*saver(tmp_path / "here")])
    there = (tmp_path / "here").rename(tmp_path / "there")
    state = tf.train.get_checkpoint_state(str(there))
    assert list(state.all_model_checkpoint_paths) == [f"{there}/model.ckpt-{n}" for n in (2, 4, 6)]
    events = (event for path in there.glob("events*") for event in tf1.train.summary_iterator(str(path)))
    *_, graph = (tf1.GraphDef.FromString(event.graph_def) for event in events if event.HasField("graph_def"))
    assert "weight" in {node.name for node in graph.node}


@pytest.fixture(autouse=True)
def _handlers():
    """Those of a command in a terminal; a job in the background of a shell ignores Ctrl-C."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_terminal_that_is_closed_ends_no_training_under_nohup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hook = StopOnSignalHook()
    assert (take_steps([hook], on_step=signals(3, signal.SIGHUP)), hook.stopped_by) == (6, None)
    hook.release()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_training_after_the_step_and_handlers_are_given_back(number):
    hook, before = StopOnSignalHook(), signal.getsignal(number)
    # The signal comes between two steps; the next step still ends.
    assert take_steps([hook], on_step=signals(3, number)) == 4
    hook.release()
    assert hook.stopped_by is number
    assert signal.getsignal(number) is before
    again = StopOnSignalHook()
    assert (take_steps([again]), again.stopped_by) == (6, None)
    again.release()
    assert signal.getsignal(number) is before


def test_a_signal_while_the_graph_is_built_is_delivered_before_the_first_step():
    hook, before = StopOnSignalHook(), signal.getsignal(signal.SIGINT)
    hook.install()
    signal.raise_signal(signal.SIGINT)  # TensorFlow's C++ could lose an exception here
    with pytest.raises(KeyboardInterrupt):
        hook.after_create_session(None, None)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("step", [3, 6])
def test_a_signal_while_the_last_checkpoint_is_saved_does_not_cut_it_off(tmp_path, step):
    hook = StopOnSignalHook()
    take_steps([hook, *saver(tmp_path, step, listeners=[listener(signals(6, signal.SIGTERM))])])
    hook.release()
    assert hook.stopped_by is signal.SIGTERM
    assert (tmp_path / "model.ckpt-6.index").exists()


@pytest.mark.parametrize(("stopped_by", "done"), [(None, 1), (signal.SIGTERM, 0)])
def test_what_comes_after_training_starts_before_its_last_checkpoint_unless_a_signal_came(tmp_path, stopped_by, done):
    stop, steps = StopOnSignalHook(), []
    stop.stopped_by = stopped_by
    take_steps([EndHook(lambda: steps.append(steps_on_disk(tmp_path)), stop), *saver(tmp_path, 4, total=6)], until=6)
    assert steps == [[4]] * done


def test_what_cannot_be_started_at_the_end_costs_no_checkpoint(tmp_path):
    take_steps([EndHook(lambda: 1 / 0, StopOnSignalHook()), *saver(tmp_path, 4, total=6)], until=6)
    assert steps_on_disk(tmp_path) == [4, 6]


def test_training_in_another_thread_catches_no_signals():
    """Python has handlers in the main thread alone."""
    with futures.ThreadPoolExecutor(1) as pool:
        pool.submit(StopOnSignalHook().after_create_session, None, None).result()


def other_machine(told):
    """What another machine tells, after three steps."""

    def build(_):
        late = tf.cast(tf1.train.get_global_step() >= 3, tf.float32)
        tf.add(tf1.placeholder_with_default(0.0, [], name=STOP), told * late, name=STOPS)

    return build


@pytest.mark.parametrize(("told", "stopped_by"), [(1.0, signal.SIGTERM), (0.5, None), (1.5, signal.SIGTERM)])
def test_a_machine_stops_when_another_is_told_to_or_ends_early(told, stopped_by):
    hook = StopOnSignalHook(together=True)
    assert take_steps([hook], build=other_machine(told)) in (3, 4)  # the step is read before it is counted, or after
    assert hook.stopped_by is stopped_by


def test_one_machine_ends_early_at_once_and_of_several_one_tells_the_others_with_its_next_step():
    assert StopOnSignalHook().end_early()
    hook, told = StopOnSignalHook(together=True), []
    steps = take_steps([hook], build=other_machine(0.0), on_step=lambda step: step == 2 and told.append(hook.end_early()))
    assert (steps, told, hook.stopped_by) == (3, [False], None)


def test_a_second_interrupt_is_not_caught():
    # A shell that starts the tests in the background has them ignore SIGINT; this is what Python does otherwise.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            take_steps([StopOnSignalHook()], on_step=signals(3, signal.SIGINT, signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_sigterm_leaves_time_to_save(first):
    """As of a scheduler, which sends it to all processes of a job, and of their leader, which passes it on."""
    hook = StopOnSignalHook()
    assert take_steps([hook], on_step=signals(3, first, signal.SIGTERM)) == 4
    hook.release()
    assert hook.stopped_by is signal.SIGTERM


class Watch(tf1.train.SessionRunHook):
    """Stands for the watch over other machines, and counts steps."""

    steps, stopped_after = 0, None

    def after_run(self, run_context, run_values):
        del run_context, run_values
        self.steps += 1

    def stop(self):
        self.stopped_after = self.stopped_after or self.steps


@pytest.mark.parametrize(("left", "signal_after", "expected"), [(6, None, 6), (4, None, 4), (6, 2, 3)])
def test_the_watch_ends_with_the_last_step_or_a_stop(left, signal_after, expected):
    watch, stop = Watch(), StopOnSignalHook()
    take_steps([watch, stop, WatchHook(watch, left)], on_step=signals(signal_after, signal.SIGTERM))
    stop.release()
    assert watch.stopped_after == expected


def test_a_session_that_is_made_anew_ends_training_on_several_machines():
    hook = WatchHook(Watch(), 6)
    hook.after_create_session(None, None)
    with pytest.raises(LostPeerError, match="the connection to the other machines was lost; start all workers again"):
        hook.after_create_session(None, None)
