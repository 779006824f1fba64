"""Load on a service, whose answers are checked; wrk itself is tried by hand."""

from __future__ import annotations

import json

import pytest

from benchmarks import load
from tests.extensions.serve.fakes import Running


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
