"""Load on services, whose answers are checked, its table, and the memory of processes; servers and wrk are tried by hand."""

import json
import subprocess
import sys

import pytest

from benchmarks import load, service_compared
from tests.extensions.serve.fakes import Running

_HOLDS = "import sys; held = b'x' * (64 << 20); print(flush=True); sys.stdin.read()"


def turn(rate: float, wrong: int = 0) -> service_compared.Turn:
    figures = {"p50_ms": 1000 / rate, "p99_ms": 2000 / rate, "memory_mb": 2 * rate}
    return {8: {**figures, "per_second": rate, "wrong": wrong, "refused": 0, "lost": 1}}


def test_medians_of_rounds_are_divided_by_the_peers():
    turns = {"own": [turn(100), turn(300, 2), turn(200)], "peer": [turn(50), turn(40), turn(80)]}
    own, peer = service_compared.table(turns, "peer").splitlines()[2:]
    assert own == "| own | 8 | 200.0 (100.0 to 300.0) | 4.00 | 5.0 | 0.25 | 10.0 | 0.25 | 400 | 4.00 | 2, 0, 3 |"
    assert peer.startswith("| peer | 8 | 50.0 (40.0 to 80.0) | 1.00 | 20.0 | 1.00 |")


def test_memory_of_a_session_includes_children():
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_HOLDS!r}], check=True)"
    command = [sys.executable, "-c", child]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        held = service_compared.memory(process.pid)
        process.stdin.close()
    assert 64 << 20 < held < 160 << 20
    assert service_compared.memory(process.pid) == 0


def test_rows_are_answered_alone_first():
    lines = [json.dumps({"text": "a"}), json.dumps({"text_a": "b", "text_b": "c", "id": "x"})]
    with Running() as running:
        (body, answer), (_, second) = load.answered(f"http://127.0.0.1:{running.port}/predict", lines)
        with pytest.raises(ValueError, match=r"row 0: .*row 0: a text is 5"):
            load.answered(f"http://127.0.0.1:{running.port}/predict", ['{"text": 5}'])
    assert json.loads(body) == {"text": "a", "id": "row-0"}
    assert b'"texts": ["a"]' in answer
    assert b'"id": "row-1"' in second


def test_texts_are_written_byte_by_byte():
    assert load.as_lua([(b'"\n', "ä".encode())]) == 'return {\n{"\\034\\010", "\\195\\164"},\n}\n'
