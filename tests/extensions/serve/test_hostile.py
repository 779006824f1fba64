"""Clients that are slow, broken or malicious, over raw sockets; the service answers on. The model is a toy."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time

import pytest

from tests.extensions.serve.fakes import Held, Running, Toy, description, message

POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
REQUEST = POST + b'Content-Length: 13\r\n\r\n{"text": "a"}'
PAUSES = {"header_timeout_s": 0.4, "body_timeout_s": 0.4, "idle_timeout_s": 0.4}


@pytest.fixture(scope="module")
def service():
    with Running(max_body_mb=0.1, **PAUSES) as running:
        yield running


@pytest.fixture(autouse=True)
def _answers_on(request):
    """Whatever a client did, the next one is answered."""
    yield
    if "service" in request.fixturenames:
        assert request.getfixturevalue("service").predict("a")[0]["texts"] == ["a"]


def received(connection: socket.socket) -> bytes:
    """Returns what comes until the other side closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def closed_after(connection: socket.socket) -> float:
    start = time.monotonic()
    received(connection)
    return time.monotonic() - start


def answer_to(service: Running, *sent: bytes) -> tuple[list[bytes], bytes]:
    """Returns the statuses of what comes on one connection, and all of it."""
    with service.connected() as connection:
        for block in sent:
            connection.sendall(block)
        answer = received(connection)
    return re.findall(rb"HTTP/1.1 (\d+)", answer), answer


@pytest.mark.parametrize(
    ("sent", "statuses", "said"),
    [
        (b"", [], b""),
        (b"POST /predict HTTP/1.1\r\nHo", [], b""),
        (REQUEST[:-5], [b"408"], b"the body did not arrive within 0.4 s"),
        (REQUEST, [b"200"], b""),
        (REQUEST.replace(b"/predict", b"http://localhost:8500/predict"), [b"200"], b""),  # the absolute form of RFC 9112
        (b"GET HTTP://localhost?model=toy HTTP/1.1\r\nHost: localhost\r\n\r\n", [b"200"], b"<html"),
        (REQUEST.replace(b"/predict", b"http://localhost/nothing"), [b"404"], b"there is no /nothing"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 60_000, [b"400"], b""),
        (POST + b"Content-Length: 900000\r\nExpect: 100-continue\r\n\r\n", [b"413"], b""),
        (b"\x16\x03\x01\x02\x00" * 9, [b"400"], b""),
        (b"\0" * 50 + b"\r\n\r\n", [b"400"], b""),
        (b"GET / SPDY/9\r\n\r\n", [b"400"], b""),
        (b"POST /predict HTTP/1.1\r\nContent-Length: -1\r\n\r\n", [b"400"], b""),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else None,
)
def test_a_client_is_answered_and_not_waited_for(service, sent, statuses, said):
    start = time.monotonic()
    answered, answer = answer_to(service, sent)
    assert time.monotonic() < start + 5
    assert answered == statuses
    assert said in answer


def test_the_head_of_a_second_request_is_not_waited_for_either():
    with Running(header_timeout_s=0.3) as running, running.connected() as connection:
        connection.sendall(REQUEST)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(REQUEST[:20])
        assert closed_after(connection) < 5


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(service):
    start = time.monotonic()
    with service.connected() as connection, contextlib.suppress(OSError):
        while time.monotonic() < start + 5:
            connection.sendall(b"G")
            time.sleep(0.01)
    assert time.monotonic() < start + 5


def test_requests_sent_at_once_on_one_connection_are_answered_in_order(service):
    _, answer = answer_to(service, b"".join(REQUEST.replace(b'"a"', b'"%c"' % letter) for letter in b"abcdefgh"))
    assert re.findall(rb'"texts": \["(.)"\]', answer) == [*map(str.encode, "abcdefgh")]


def test_a_client_that_closes_before_the_answer_harms_nobody(service):
    for _ in range(20):
        with service.connected() as connection:
            connection.sendall(REQUEST)


@pytest.mark.parametrize("hold_s", [0.0, 1.2], ids=["at once", "after probes"])
def test_a_client_that_has_closed_its_sending_side_is_answered(hold_s):
    pauses = iter([hold_s, 0.0])
    toy = Toy(description(), lambda _: time.sleep(next(pauses)))
    with Running(toy) as running, running.connected() as connection:
        connection.sendall(REQUEST * 2)
        connection.shutdown(socket.SHUT_WR)
        answer = received(connection)  # to the end: the connection is closed afterwards
    assert answer.count(b"HTTP/1.1 200") == 2
    assert (b"HTTP/1.1 100" in answer) == (hold_s > 0)
    assert toy.batches == [["a"], ["a"]]


def test_a_client_that_closes_its_sending_side_within_a_request_is_not_waited_for():
    with Running() as running, running.connected() as connection:
        connection.sendall(REQUEST[:-5])
        connection.shutdown(socket.SHUT_WR)
        assert closed_after(connection) < 5  # not after body_timeout_s, 30 s


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_that_is_too_large_is_dropped_as_it_comes_and_told_so(service, chunked):
    block = b"a" * 500_000
    how = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 3000000"
    frames = [b"%x\r\n%b\r\n" % (len(block), block) if chunked else block] * 6
    statuses, _ = answer_to(service, POST + how + b"\r\n\r\n", *frames, b"0\r\n\r\n" * chunked + REQUEST)
    assert statuses == [b"413", b"200"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (POST, b"413"),
        (POST.replace(b"1.1", b"1.0"), b"413"),
        (POST.replace(b"predict", b"nothing"), b"404"),
        (POST.replace(b"POST", b"PUT"), b"405"),
        (POST.replace(b"localhost", b"evil.example"), b"403"),
    ],
)
@pytest.mark.parametrize("chunked", [True, False])
def test_the_last_request_of_a_connection_is_told_why_its_body_is_refused(head, status, chunked):
    block = b"a" * 5_000_000
    if chunked:
        head, block = (
            head.replace(b"1.0", b"1.1") + b"Transfer-Encoding: chunked\r\n",
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(block), block),
        )
    else:
        head += b"Content-Length: 5000000\r\n"
    with Running() as running:
        statuses, _ = answer_to(running, head + b"Connection: close\r\n\r\n", block)
    assert statuses == [status]


def test_a_body_that_does_not_come_to_its_end_is_not_waited_for_after_its_refusal(service):
    with service.connected() as connection:
        connection.sendall(POST + b"Connection: close\r\nContent-Length: 5000000000\r\n\r\n{")
        assert connection.recv(12) == b"HTTP/1.1 413"
        assert closed_after(connection) < 5


def test_a_body_that_is_said_to_be_too_large_is_refused_before_it_comes():
    with Running() as running, running.connected() as connection:
        connection.sendall(POST + b"Content-Length: 5000000000\r\n\r\n{")
        assert connection.recv(12) == b"HTTP/1.1 413"  # not after body_timeout_s, 30 s


def test_two_lengths_of_one_body_end_the_connection(service):
    body = b"d\r\n" + REQUEST[-13:] + b"\r\n0\r\n\r\n" + REQUEST.replace(b'"a"', b'"z"')
    head = POST + b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n" % len(body)
    statuses, answer = answer_to(service, head + body)
    assert statuses == [b"400"]
    assert b"both Content-Length and Transfer-Encoding" in answer
    assert ["z"] not in service.launcher.toys[0].batches


@pytest.mark.parametrize(
    "sent",
    [REQUEST, REQUEST * 3, REQUEST.replace(b"Host", b"Connection: close\r\nHost"), REQUEST + b"\0\r\n\r\n"],
    ids=["one", "several at once", "the last", "one and what is not HTTP"],
)
def test_a_client_that_does_not_read_is_given_up(sent):
    class Wordy(Toy):
        def _answer(self, *_):
            return json.dumps("a" * 8_000_000).encode()

    with Running(Wordy(description()), **PAUSES) as running, running.connected() as connection:
        connection.sendall(sent)
        assert connection.recv(12) == b"HTTP/1.1 200"
        running.wait_for(lambda: not running.server.server_state.connections)


def test_more_connections_than_there_may_be_are_closed():
    with Running(max_connections=2) as running:
        with running.connected() as first, running.connected() as second:
            for connection in (first, second):
                connection.sendall(REQUEST)
                assert connection.recv(12) == b"HTTP/1.1 200"
            with running.connected() as third:
                assert closed_after(third) < 5
        running.wait_for(lambda: not running.server.server_state.connections)
        assert running.predict("a")


def test_more_requests_than_there_may_be_are_refused():
    toy = Held()
    with Running(toy, max_delay_ms=0.0, max_requests=3) as running:
        early = [running.ask_later() for _ in range(3)]
        running.wait_for(lambda: running.service._inside == 3)
        status, _, headers = running.ask(body=b"b" * 5_000_000, Connection="close")
        toy.free.set()
        assert [one.result(10)[0] for one in early] == [200, 200, 200]
    assert status == 429
    assert 1 <= int(headers["retry-after"]) <= 60


def test_more_tokens_than_may_wait_are_refused():
    toy = Held()
    with Running(toy, max_delay_ms=0.0, max_queue_tokens=4) as running:
        early = [running.ask_later()]
        assert toy.begun.wait(60)
        early.append(running.ask_later("a b c d e"))
        running.wait_for(lambda: running.service.workers.queue.tokens == 7)
        refused = running.ask(body={"text": "b"})
        toy.free.set()
        assert [one.result(10)[0] for one in early] == [200, 200]
    assert message(refused) == (429, "7 tokens are waiting, the maximum; try again later")


def test_tokens_of_a_request_whose_client_has_gone_refuse_no_others():
    toy = Held()
    with Running(toy, max_queue_tokens=4, batch_tokens=4) as running:
        with running.connected() as connection:
            body = json.dumps({"rows": ["a b c d e"] * 3}).encode()
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            assert toy.begun.wait(60)
        running.wait_for(lambda: not running.service.workers.queue.tokens)
        later = running.ask_later()
        running.wait_for(lambda: running.service.workers.queue.tokens == 3)
        toy.free.set()
        assert later.result(10)[0] == 200


def test_a_request_whose_client_has_gone_is_not_computed():
    toy = Held()
    with Running(toy, max_delay_ms=0.0) as running:
        running.ask_later()
        assert toy.begun.wait(60)
        with running.connected() as connection:
            connection.sendall(REQUEST)
            running.wait_for(lambda: running.service.workers.queue.requests == 1)
            ((_, (left,)),) = running.service.workers.queue._requests
        running.wait_for(left.answer.cancelled)
        toy.free.set()
        running.wait_for(lambda: not running.service._inside)
    assert toy.batches == [["a"]]
