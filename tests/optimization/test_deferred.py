"""Against the published update of every row in every step, in NumPy and float64.

Bounds: a weight of 0.1 is rounded to 4e-9 in each of 320 steps; with bias correction float32's 1 - beta_2^t is off by 1e-5
of itself where t is small, and the way that a weight goes by half of that. Rates are twenty times those of fine-tuning.
Moments: 0.9 and 0.999 in float32 are off by 3e-8 and 1e-8 of themselves, 320 times over, which counts in relation to the
average of sizes, as gradients may cancel each other.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization.averaging import MovingAverage, shadows
from bert_tf.optimization.deferred import _CHUNK, MOST_STEPS, DeferredTable
from bert_tf.optimization.optimizers import AdamWConfig, learning_rate

tf1 = tf.compat.v1
STEPS, WARM_UP, PEAK = 320, 30, 1e-3
WEIGHTS_AGREE = {"rtol": 0, "atol": 4e-7}
MOMENTS_AGREE = 2e-5
ROWS, WIDTH = 30, 4
NEVER, ONCE, WITH_GAPS = 0, 1, 2
USED = {ONCE: (7,), WITH_GAPS: (3, 4, 6, 56, 306)}  # gaps of 1, 2, 50 and 250 steps
RANDOM = np.random.default_rng(0)
SIZES = 10 ** RANDOM.uniform(-9, 0, [ROWS, WIDTH])  # of gradients
CONFIGS = {
    "published": AdamWConfig(),
    "without decay": AdamWConfig(weight_decay=0.0),
    "bias-corrected": AdamWConfig(bias_correction=True),
    "bias-corrected without decay": AdamWConfig(bias_correction=True, weight_decay=0.0),
    "by the native kernel": AdamWConfig(native=True),
    "bias-corrected by the native kernel": AdamWConfig(bias_correction=True, native=True),
}


class State(NamedTuple):
    """Of a table: weights and moments, [V, D] each."""

    weights: np.ndarray
    m: np.ndarray
    v: np.ndarray


class Batch(NamedTuple):
    """What a step reads, and the gradient by what it read."""

    ids: np.ndarray  # [N]
    upstream: np.ndarray  # [N, D]


def batch_of(step):
    """Returns some rows that are common and some that are rare; an entry may occur several times."""
    ids = 3 + RANDOM.integers(0, ROWS - 3, 6) * RANDOM.integers(0, ROWS - 3, 6) // ROWS
    ids = RANDOM.permutation([*ids, *(row for row, steps in USED.items() if step in steps)]).astype(np.int32)
    return Batch(ids, (RANDOM.normal(size=[len(ids), WIDTH]) * SIZES[ids]).astype(np.float32))


START = State(RANDOM.normal(0, 0.02, [ROWS, WIDTH]).astype(np.float32), *np.zeros([2, ROWS, WIDTH], np.float32))
BATCHES = [batch_of(step) for step in range(STEPS)]


def updates(state, batches, config, *, peak=PEAK) -> Iterator[State]:
    """Yields the state before each step and after the last."""
    w, m, v = (x.astype(np.float64) for x in state)
    yield State(w, m, v)
    for step, (ids, upstream) in enumerate(batches):
        gradient = np.zeros_like(w)
        np.add.at(gradient, ids, upstream)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        t = step + 1 if config.bias_correction else np.inf
        rate = peak * (step / WARM_UP if step < WARM_UP else 1 - step / STEPS)
        w = w - rate * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + config.weight_decay * w)
        yield State(w, m, v)


@functools.cache
def expected(config):
    return list(updates(START, BATCHES, config))


@functools.cache
def average_sizes():
    """Returns the state for gradients of one sign."""
    return list(updates(START, [Batch(ids, np.abs(upstream)) for ids, upstream in BATCHES], AdamWConfig()))


def assert_moments_agree(actual, step, config):
    for got, want, size in zip(actual[1:], expected(config)[step][1:], average_sizes()[step][1:]):
        np.testing.assert_array_less(np.abs(got - want), MOMENTS_AGREE * size + 1e-30)


class Table:
    """A graph with a table whose updates are put off."""

    def __init__(self, config, shape, peak, average=None) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.global_step = tf1.train.get_or_create_global_step()
            self.ids, self.upstream = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.float32, [None, None])
            rate_at = functools.partial(learning_rate, peak=peak, warmup_steps=WARM_UP, total_steps=STEPS)
            self.deferred = DeferredTable(config, rate_at, self.global_step.read_value(), total_steps=STEPS, average=average)
            with tf1.variable_scope("bert/embeddings"):
                table = tf1.get_variable("word_embeddings", shape)
                self.read = self.deferred.lookup(table, self.ids)
            gradient = tf.gradients(self.read, self.deferred.gradient_source, self.upstream)[0]
            with tf.control_dependencies([self.deferred.apply(tf.convert_to_tensor(gradient))]):
                self.train = self.global_step.assign_add(1, read_value=False)
            self.make_current = self.deferred.make_current()
            variables = {v.op.name.rpartition("/")[2]: v for v in tf1.global_variables()}
            self.state = State(*(variables[name] for name in ("word_embeddings", "adam_m", "adam_v")))
            self.current_at = tf1.local_variables()[0]
            self.average = shadows().get("bert/embeddings/word_embeddings")
            self.starts = [variable.initial_value for variable in (*self.state, self.global_step)]
            self.initialize = tf1.global_variables_initializer(), tf1.local_variables_initializer()


made = functools.cache(Table)


class Run:
    """A session with a table whose updates are put off; tests that add to its graph have one of their own."""

    def __init__(self, config, *, start=START, step=0, peak=PEAK, make=made) -> None:
        self.table = make(config, start.weights.shape, peak)
        self.graph, self.deferred = self.table.graph, self.table.deferred
        globally, locally = self.table.initialize
        self._session = tf1.Session(graph=self.graph)
        self._session.run(globally, dict(zip(self.table.starts, (*start, step))))
        self._session.run(locally)  # after the checkpoint, as in a MonitoredSession

    def step(self, batch) -> np.ndarray:
        """Trains; returns what was read."""
        table = self.table
        return self._session.run([table.read, table.train], {table.ids: batch.ids, table.upstream: batch.upstream})[0]

    def make_current(self) -> State:
        self._session.run(self.table.make_current)
        return self._session.run(self.table.state)

    def current_at(self) -> np.ndarray:
        return self._session.run(self.table.current_at)


def operations_before(operation):
    seen, ahead = set(), [operation]
    while ahead:
        last = ahead.pop()
        operations = {*(tensor.op for tensor in last.inputs), *last.control_inputs} - seen
        seen |= operations
        ahead += operations
    return seen


@functools.cache
def trained(config):
    """Returns what each step read, and the state at the end."""
    run = Run(config)
    return [run.step(batch) for batch in BATCHES], run.make_current()


@pytest.fixture(params=CONFIGS)
def config(request):
    chosen = CONFIGS[request.param]
    if chosen.native:
        request.getfixturevalue("kernels")
    return chosen


def test_rows_are_read_and_the_whole_table_ends_as_if_they_had_been_updated_all_along(config):
    reads, end = trained(config)
    for step, (read, batch) in enumerate(zip(reads, BATCHES)):
        np.testing.assert_allclose(read, expected(config)[step].weights[batch.ids], **WEIGHTS_AGREE, err_msg=f"step {step}")
    np.testing.assert_allclose(end.weights, expected(config)[-1].weights, **WEIGHTS_AGREE)
    assert np.abs(end.weights - START.weights).max() > 1e-2
    assert_moments_agree(end, STEPS, config)


def test_making_the_table_current_on_the_way_changes_nothing_that_follows(config):
    run = Run(config)
    for step, batch in enumerate(BATCHES):
        if step in (0, 1, 5, 6, 7, 60, 300):
            current = run.make_current()
            assert (run.current_at() == step).all()
            np.testing.assert_allclose(current.weights, expected(config)[step].weights, **WEIGHTS_AGREE)
            assert_moments_agree(current, step, config)
        np.testing.assert_allclose(run.step(batch), trained(config)[0][step], **WEIGHTS_AGREE)
    np.testing.assert_allclose(run.make_current().weights, trained(config)[1].weights, **WEIGHTS_AGREE)


def test_a_run_continues_from_a_checkpoint_in_which_all_rows_are_current(config):
    step = 100
    run = Run(config, start=expected(config)[step], step=step)
    assert (run.current_at() == step).all()
    for batch, state in zip(BATCHES[step:], expected(config)[step:]):
        np.testing.assert_allclose(run.step(batch), state.weights[batch.ids], **WEIGHTS_AGREE)
    end = run.make_current()
    np.testing.assert_allclose(end.weights, expected(config)[-1].weights, **WEIGHTS_AGREE)
    assert_moments_agree(end, STEPS, config)


@pytest.mark.parametrize("rows", [_CHUNK, 2 * _CHUNK + 1])
def test_tables_of_any_size_become_current(rows):
    start = State(RANDOM.normal(0, 0.02, [rows, 2]).astype(np.float32), *np.zeros([2, rows, 2], np.float32))
    batches = []
    for _ in range(12):
        ids = RANDOM.integers(0, rows, 900).astype(np.int32)
        batches.append(Batch(ids, RANDOM.normal(size=[900, 2]).astype(np.float32)))
    run = Run(AdamWConfig(), start=start)
    for batch in batches:
        run.step(batch)
    *_, end = updates(start, batches, AdamWConfig())
    current = run.make_current()
    np.testing.assert_allclose(current.weights, end.weights, **WEIGHTS_AGREE)
    np.testing.assert_allclose(current.m, end.m, rtol=2e-5, atol=1e-7)  # gradients of one row may cancel each other
    np.testing.assert_allclose(current.v, end.v, rtol=2e-5, atol=1e-7)


def test_a_micro_batch_finds_its_rows_among_those_of_the_batch():
    run = Run(AdamWConfig(), make=Table)
    with run.graph.as_default():
        read = run.deferred.lookup(run.deferred.table, tf.constant([7, 4, 7]))
        gradient = tf.convert_to_tensor(tf.gradients(read, run.deferred.gradient_source)[0])
    read_rows, by_row = run._session.run([read, gradient], {run.table.ids: [4, 9, 7, 4]})
    np.testing.assert_array_equal(read_rows, START.weights[[7, 4, 7]])
    np.testing.assert_array_equal(by_row[:, 0], [1, 0, 2])  # of rows 4, 9 and 7


def test_only_rows_of_the_batch_are_written_in_a_step():
    run = Run(AdamWConfig())
    for step, ids in enumerate([[3, 4], [4, 5]]):
        run.step(Batch(np.array(ids, np.int32), np.ones([2, WIDTH], np.float32)))
        assert set(np.flatnonzero(run.current_at() == step + 1)) == set(ids)


def test_what_decays_is_told_by_the_full_name_of_the_table():
    config = AdamWConfig(undecayed="bert/embeddings")
    run = Run(config)
    run.step(BATCHES[0])
    run.step(BATCHES[1])
    np.testing.assert_array_equal(run.make_current().weights[NEVER], START.weights[NEVER])


def test_no_variable_is_written_before_the_native_kernel_has_read_it(kernels):
    assert kernels.is_loaded()
    run = Run(AdamWConfig(native=True))
    operations = run.graph.get_operations()
    (read,) = (op for op in operations if op.type == "BertTfMadeCurrent" and "while" not in op.name)
    writes = [op for op in operations if op.type == "ResourceScatterUpdate" and "while" not in op.name]
    assert len(writes) == 4
    assert all(read in operations_before(write) for write in writes)


def test_the_native_kernel_refuses_rows_of_a_later_step(kernels):
    assert kernels.is_loaded()
    run = Run(AdamWConfig(native=True), make=Table)
    with run.graph.as_default():
        run._session.run(run.table.current_at.assign(np.full(ROWS, 9.0, np.float32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 4 is of step 9"):
        run.step(Batch(np.array([4], np.int32), np.ones([1, WIDTH], np.float32)))


def test_no_variable_is_written_before_it_is_read():
    run = Run(AdamWConfig())
    with run.graph.as_default():
        operations = run.graph.get_operations()
        reads = {op.inputs[0].op.name: op for op in operations if op.type == "ResourceGather"}
        writes = {op.inputs[0].op.name: op for op in operations if op.type == "ResourceScatterUpdate"}
        assert len(writes) == 4
        assert [name for name, write in writes.items() if reads[name] not in operations_before(write)] == []


def averages(config, decay, *, peak=PEAK):
    """Yields the average of the weights of all rows after each step, from the recursion."""
    total = np.zeros([ROWS, WIDTH])
    for number, state in enumerate(list(updates(START, BATCHES, config, peak=peak))[1:], start=1):
        total = decay * total + (1 - decay) * state.weights
        yield total / (1 - decay**number)


@pytest.mark.parametrize(
    ("name", "decay", "peak"),
    [
        ("published", 0.999, PEAK),
        ("bias-corrected", 0.9, PEAK),
        ("published", 0.99, 2.0),  # rows that lose two percent of themselves in a step
    ],
)
def test_the_average_of_every_row_is_what_it_would_be_without_waiting(name, decay, peak):
    make = functools.partial(Table, average=MovingAverage(decay))
    run, largest = Run(CONFIGS[name], peak=peak, make=make), 0.0
    for step, (batch, wanted) in enumerate(zip(BATCHES, averages(CONFIGS[name], decay, peak=peak)), start=1):
        run.step(batch)
        largest = max(largest, np.abs(wanted).max())
        if step in (1, 2, 6, 7, 60, 61, 300, STEPS):
            run.make_current()
            average = run._session.run(run.table.average)
            np.testing.assert_allclose(average, wanted, rtol=0, atol=1e-5 * largest, err_msg=f"step {step}")


def rate_at(step):
    return tf.ones_like(step, tf.float32) * 1e-5


def test_counters_are_numbers_that_gpus_write_and_more_steps_than_float32_counts_are_refused():
    with tf.Graph().as_default():
        make = functools.partial(DeferredTable, AdamWConfig(), rate_at, tf.constant(0, tf.int64))
        make(total_steps=MOST_STEPS).lookup(tf1.get_variable("words", [9, 2]), tf.constant([1, 4]))
        assert {variable.dtype for variable in tf1.local_variables()} == {tf.float32}
        with pytest.raises(ValueError, match="16777217 steps: updates can be deferred for at most 16777216"):
            make(total_steps=MOST_STEPS + 1)
