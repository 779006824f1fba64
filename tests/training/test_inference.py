"""Evaluation and prediction of a job."""

import threading
from types import SimpleNamespace

import pytest

from bert_tf.training import inference


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
    monkeypatch.setattr(inference, "forward_model", lambda _: None)
    return made


@pytest.mark.parametrize("ahead", [True, False])
def test_the_graph_is_built_once_and_closed_whoever_built_it(graphs, ahead):
    unbuilt = inference.Inference(SimpleNamespace(machine=None))
    for _ in range(2 * ahead):
        unbuilt.build_ahead()
    assert [unbuilt.forward(), unbuilt.forward()] == [graphs[0]] * 2
    assert (graphs[0].thread is not threading.current_thread()) == ahead
    unbuilt.close()
    assert [graph.closed for graph in graphs] == [True]


@pytest.mark.usefixtures("graphs")
def test_what_fails_ahead_fails_where_the_graph_is_needed(monkeypatch):
    unbuilt = inference.Inference(SimpleNamespace(machine=None))
    monkeypatch.setattr(inference, "Forward", lambda *_: 1 / 0)
    unbuilt.build_ahead()
    with pytest.raises(ZeroDivisionError):
        unbuilt.forward()
    unbuilt.close()
