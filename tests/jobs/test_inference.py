"""Evaluation and prediction of a job."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from bert_tf.jobs import inference


@pytest.fixture
def graphs(monkeypatch):
    """What is built in the place of graphs, in their order."""
    made = []

    def build(model, machine):
        del model, machine
        made.append(SimpleNamespace(thread=threading.current_thread(), closed=False))
        made[-1].close = lambda: setattr(made[-1], "closed", True)
        return made[-1]

    monkeypatch.setattr(inference, "Forward", build)
    monkeypatch.setattr(inference.training, "forward_model", lambda _: None)
    return made


@pytest.fixture
def unbuilt(graphs):
    del graphs
    return inference.Inference(SimpleNamespace(machine=None), None)


def test_the_graph_that_was_built_ahead_in_a_thread_is_the_one(unbuilt, graphs):
    unbuilt.build_ahead()
    unbuilt.build_ahead()
    assert [unbuilt.forward()] * 2 == [graphs[0], unbuilt.forward()]
    assert graphs[0].thread is not threading.current_thread()


@pytest.mark.parametrize("begins", ["forward", "build_ahead"])
def test_a_graph_is_closed_whoever_built_it(unbuilt, graphs, begins):
    getattr(unbuilt, begins)()
    unbuilt.close()
    assert [graph.closed for graph in graphs] == [True]


def test_what_fails_ahead_fails_where_the_graph_is_needed(unbuilt, monkeypatch):
    monkeypatch.setattr(inference, "Forward", lambda *_: 1 / 0)
    unbuilt.build_ahead()
    with pytest.raises(ZeroDivisionError):
        unbuilt.forward()
    unbuilt.close()
