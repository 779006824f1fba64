"""Workers that end, are stuck, cannot start; the model is a toy in a thread."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from unittest import mock

import pytest

from bert_tf.errors import BertError, TrainingError
from bert_tf.extensions.serve import service, worker
from bert_tf.extensions.serve import workers as workers_module
from bert_tf.extensions.serve.metrics import Metrics
from bert_tf.extensions.serve.settings import configured
from bert_tf.extensions.serve.workers import Workers
from tests.extensions.serve.fakes import Held, Launcher, Loading, Running, Toy, description, message

SECOND = description(checkpoint="/runs/toy/model.ckpt-2", digest="d2" * 32)


def once(do):
    """Does something in the first batch only."""
    left = [do]
    return lambda batch: left and left.pop()(batch)


def raising(error):
    """Does so in a batch with the text x."""

    def before(batch):
        if any("x" in example.texts for part in batch for example in part.examples):
            raise error

    return before


def ended(_):
    raise SystemExit  # in a thread: its end


class Slow(int):
    """A number that lets other threads run while it is added."""

    def __radd__(self, other):
        time.sleep(0.001)
        return int(other) + int(self)


def test_workers_are_counted_from_many_threads():
    many, begun = 20, []
    metrics = Metrics()
    workers = Workers(configured("/runs/toy", workers=many), metrics, launch=Launcher())
    workers._descriptions, workers._begin = (description(),), begun.append

    def count():
        for _ in range(5):
            workers._count(Slow(1))
            workers._count(Slow(-1))
        workers._count(Slow(1))

    threads = [threading.Thread(target=count) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert workers.computing == metrics.workers._value.get() == many
    assert begun == list(range(1, many))  # by the first one alone
    assert workers.first.done()
    assert workers.all.done()


def test_requests_of_a_worker_that_ends_are_computed_by_another():
    with Running(Toy(description(), once(ended)), max_delay_ms=50.0) as running:
        assert [one["texts"] for one in running.predict("a", "b")] == [["a"], ["b"]]
        assert len(running.launcher.started) == 2
        running.wait_for(lambda: "bert_tf_workers_replaced_total 1.0" in running.ask("/metrics")[1])


def test_a_request_on_which_a_second_worker_ends_is_refused_and_others_are_not():
    with Running(Toy(description(), raising(SystemExit)), max_delay_ms=100.0) as running:
        answers = {text: running.ask_later(text) for text in "axb"}
        assert (answers["a"].result(20)[0], answers["b"].result(20)[0]) == (200, 200)
        line = "the request cannot be computed: its process ended; is it too large for the memory?"
        assert message(answers["x"].result(20)) == (500, line)
        assert running.predict("c")[0]["texts"] == ["c"]


def test_an_idle_worker_that_ends_is_replaced():
    with Running() as running:
        running.launcher.started[0].kill()
        running.wait_for(lambda: len(running.launcher.started) == 2 and running.service.is_ready)
        assert running.predict("a")[0]["texts"] == ["a"]


def test_idle_workers_that_have_ended_count_against_no_request(monkeypatch):
    monkeypatch.setattr(workers_module, "_LOOK_S", 20.0)
    with Running(workers=2) as running:
        running.wait_for(lambda: running.service.workers.computing == 2)
        time.sleep(0.1)  # both wait for a batch
        for worker in list(running.launcher.started):
            worker.kill()
        assert running.predict("a", "b")[0]["texts"] == ["a"]
        assert running.launcher.toys[0].batches == [["a", "b"]]


def test_workers_that_end_while_a_batch_is_on_its_way_count_against_no_request(monkeypatch):
    converse, dying = worker.converse, iter([True, True])

    def killed(connection, make):
        """A process that gets a signal has a connection until its memory is freed."""
        held = mock.Mock(wraps=connection)
        held.poll.side_effect = lambda _: connection.poll(None) and next(dying, False) and sys.exit()
        converse(held, make)

    monkeypatch.setattr(worker, "converse", killed)
    with Running() as running:
        assert running.predict("a")[0]["texts"] == ["a"]
        assert len(running.launcher.started) == 3


def test_a_worker_that_does_not_answer_is_replaced():
    stuck = threading.Event()
    with Running(Toy(description(), once(lambda _: stuck.wait(20))), answer_timeout_s=1.0) as running:
        assert running.ask(body={"text": "a"})[0] == 503
        running.wait_for(lambda: len(running.launcher.started) == 2 and running.service.is_ready)
        assert running.predict("b")[0]["texts"] == ["b"]
        stuck.set()


@pytest.mark.parametrize(
    ("error", "line"),
    [(TrainingError("memory is out"), "memory is out"), (KeyError("secret"), "internal error")],
)
def test_what_cannot_be_computed_is_refused_alone(error, line):
    with Running(Toy(description(), raising(error))) as running:
        assert message(running.ask(body={"text": "x"})) == (500, f"the request cannot be computed: {line}")
        assert running.predict("a")[0]["texts"] == ["a"]
        assert len(running.launcher.started) == 1


def test_a_worker_whose_process_starts_while_all_are_killed_loads_nothing():
    launcher = Launcher(Toy(description()))

    def launch(config, number):
        process = launcher(config, number)
        workers.kill()
        return process

    workers = Workers(configured("/runs/toy"), Metrics(), launch=launch)
    workers.start()
    with pytest.raises(BertError, match="the service has ended"):
        workers.first.result(10)
    assert not launcher.started[0].is_alive()


def test_a_model_that_cannot_be_loaded_ends_the_service():
    with Running(Toy(description(), problem="no checkpoint there")) as running:
        running._thread.join(10)
    assert isinstance(running.error, BertError)
    assert str(running.error) == "no checkpoint there"


def test_several_workers_start_after_the_first_and_share_the_work():
    together = threading.Barrier(3, timeout=10)
    with Running(Toy(description(), lambda _: together.wait()), workers=3, batch_tokens=1) as running:
        running.wait_for(lambda: running.service.workers.computing == 3)
        assert [one.result(10)[0] for one in [running.ask_later() for _ in range(3)]] == [200, 200, 200]


def test_a_worker_whose_checkpoint_is_another_by_now_has_the_model_reloaded():
    with Running(Toy(description()), Toy(SECOND)) as running:
        running.launcher.started[0].kill()
        running.wait_for(lambda: running.service.models[0].step == "model.ckpt-2")
        assert running.predict("a")[0]["of"] == "model.ckpt-2"


def test_a_model_is_closed_when_its_worker_ends():
    toy = Toy(description())
    with Running(toy) as running:
        running.predict("a")
        assert not toy.is_closed
    running.launcher.started[0].join(10)
    assert toy.is_closed


class TestReload:
    def test_requests_go_on_and_the_next_are_answered_by_the_other_model(self):
        toy = Held()
        with Running(toy, Toy(SECOND), admin=True) as running:
            early = running.ask_later()
            assert toy.begun.wait(60)
            assert running.ask("/reload", b"")[1]["model"]["checkpoint"] == "model.ckpt-2"
            assert running.predict("b")[0]["of"] == "model.ckpt-2"
            toy.free.set()
            assert early.result(10)[1]["predictions"][0]["of"] == "model.ckpt-1"
            running.wait_for(lambda: not running.launcher.started[0].is_alive())

    def test_workers_that_have_ended_are_let_go_of(self):
        with Running(Toy(description()), Toy(SECOND), admin=True) as running:
            for number in range(3):
                assert running.ask("/reload", b"")[0] == 200
                running.wait_for(lambda: running.launcher.started[number].is_alive() is False)  # noqa: B023
                running.wait_for(lambda: all(one.join(0.0) for one in running.service._retired))
            assert len(running.service._retired) == 1

    def test_a_request_that_was_read_before_is_computed_after(self, monkeypatch):
        with Running(Toy(description()), Toy(SECOND)) as running:
            read = running.service._read

            async def slowly(*arguments):
                parts = await read(*arguments)
                if running.service.models[0].step == "model.ckpt-1":
                    await running.service.reload()
                    while running.launcher.started[0].is_alive():
                        await asyncio.sleep(0.01)
                return parts

            monkeypatch.setattr(running.service, "_read", slowly)
            assert running.predict("a")[0]["of"] == "model.ckpt-2"

    def test_a_model_that_cannot_be_loaded_leaves_the_one_there_is(self, caplog):
        with Running(Toy(description()), Toy(description(), problem="damaged"), admin=True) as running:
            assert message(running.ask("/reload", b"")) == (503, "cannot reload: damaged")
            assert running.predict("a")[0]["of"] == "model.ckpt-1"
            assert 'bert_tf_reloads_total{outcome="failed"} 1.0' in running.ask("/metrics")[1]
        assert "cannot reload: damaged; model.ckpt-1 keeps answering" in caplog.text

    def test_a_new_checkpoint_that_cannot_be_loaded_is_tried_again(self, monkeypatch):
        changes = [True]
        monkeypatch.setattr(service.Watch, "has_changed", lambda _: bool(changes) and changes.pop())
        monkeypatch.setattr(service, "_LOOK_S", 0.01)
        monkeypatch.setattr(service, "_PAUSE_S", 0.01)
        with Running(Toy(description()), Toy(SECOND, problem="no memory"), Toy(SECOND), watch=True) as running:
            running.wait_for(lambda: running.service.models[0].step == "model.ckpt-2")

    def test_a_checkpoint_that_appears_while_the_first_is_loaded_is_served(self, monkeypatch, tmp_path):
        monkeypatch.setattr(service, "_LOOK_S", 0.01)
        (tmp_path / "checkpoint").write_text("1")
        first = Loading()
        with Running(first, Toy(SECOND), runs=[str(tmp_path)], waits=False, watch=True) as running:
            running.wait_for(lambda: running.launcher.started)
            (tmp_path / "checkpoint").write_text("20")
            first.free.set()
            running.wait_for(lambda: running.service.models and running.service.models[0].step == "model.ckpt-2")

    def test_a_model_of_which_a_second_worker_cannot_start_leaves_the_one_there_is(self):
        toys = Toy(description()), Toy(description()), Toy(SECOND), Toy(SECOND, problem="no memory")
        with Running(*toys, workers=2, admin=True) as running:
            running.wait_for(lambda: running.service.workers.computing == 2)
            assert message(running.ask("/reload", b"")) == (503, "cannot reload: no memory")
            assert running.predict("a")[0]["of"] == "model.ckpt-1"
            running.wait_for(lambda: not running.launcher.started[2].is_alive())

    def test_on_a_hangup(self):
        with Running(Toy(description()), Toy(SECOND)) as running:
            running.loop.call_soon_threadsafe(running.service.request_reload)
            running.wait_for(lambda: running.service.models[0].step == "model.ckpt-2")


class TestEnd:
    def test_what_was_accepted_is_answered_first(self):
        toy = Held()
        with Running(toy) as running:
            response = running.ask_later()
            assert toy.begun.wait(60)
            running.stop()
            running.wait_for(lambda: running.server.should_exit)
            assert not running.service.is_ready
            toy.free.set()
            status, _, headers = response.result(10)
        assert (status, headers["connection"]) == (200, "close")  # so that the client does not send another on it
        assert running.error is None

    def test_a_model_that_is_still_being_loaded_is_not_waited_for(self):
        toy = Loading()
        with Running(toy, waits=False) as running:
            running.stop()
            running._thread.join(5)
            assert not running._thread.is_alive()
            toy.free.set()

    def test_a_second_signal_ends_at_once(self):
        toy = Held()
        with Running(toy) as running:
            lost = running.ask_later()
            assert toy.begun.wait(60)
            running.stop()
            running.stop()
            running._thread.join(5)
            assert not running._thread.is_alive()
            toy.free.set()
            assert lost.exception(10) or lost.result()[0] != 200
        assert isinstance(running.error, KeyboardInterrupt)
