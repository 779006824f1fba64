from unittest import mock

import pytest
import tensorflow as tf

from bert_tf.extensions.profile import matmul_peak

tf1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(matmul_peak, "_CHAINS", {"CPU": ((64, (64, 64)), (64, (32, 96))), "GPU": ((4096, (4096, 4096)),)})
    monkeypatch.setattr(matmul_peak, "_SECONDS", 0.002)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2]))
        yield graph


def test_is_measured_in_the_number_formats_of_the_graph_s_products(graph):
    half = tf.zeros([2, 2], tf.bfloat16)
    tf.while_loop(lambda turn, _: turn < 2, lambda turn, x: (turn + 1, tf.matmul(x, x)), (0, half))
    peak = matmul_peak.MatmulPeak(graph)
    with tf1.Session() as session:
        measured = peak.measure(session)
    assert set(measured) == {"bfloat16", "float32"}
    assert min(measured.values()) > 0.01


def test_a_graph_without_products_has_none():
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        assert matmul_peak.MatmulPeak(graph).measure(session) == {}


def test_counts_each_turn(monkeypatch, graph):
    clock = iter(range(100))
    peak = matmul_peak.MatmulPeak(graph)
    # A run takes a second by this clock: a turn of 2 * 2 * 64 * 64 * 64 operations then is one of 0.001 GFLOP/s.
    monkeypatch.setattr(matmul_peak.time, "perf_counter", lambda: next(clock))
    with tf1.Session() as session:
        assert peak.measure(session) == {"float32": pytest.approx(4 * 64**3 / 1e9)}


def test_too_little_memory_is_no_problem(monkeypatch, graph):
    exhausted = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
    peak = matmul_peak.MatmulPeak(graph)
    with tf1.Session() as session:
        monkeypatch.setattr(session, "run", mock.Mock(side_effect=exhausted))
        assert peak.measure(session) == {}
