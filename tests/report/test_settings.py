"""Configuration and environment as rows of tables."""

from __future__ import annotations

import pytest

from bert_tf.report import run_files, settings
from tests.report import example


def test_what_flags_say_stands_there_only(tmp_path):
    (run,) = run_files.read([example.begun(tmp_path, seed=7, vocabulary_sha256="ab")])
    assert settings.flags(run) == {"task_name": "RTE", "seed": "7"}
    tables = settings.tables(run)
    assert tables["Training"] == {"train_batch_size": "8"}
    assert tables["Model"] == {"hidden_size": "8"}
    assert tables["Fingerprints (sha256)"] == {"vocabulary": "ab"}
    assert settings.environment(run) == {
        "strategy": "one_device", "devices": "/device:CPU:0", "replicas": "1", "tensorflow": "2.15.1",
    }  # fmt: skip


def test_only_differences_between_runs(tmp_path):
    runs = run_files.read([example.begun(tmp_path / "a", seed=1, layer_decay=0.9), example.begun(tmp_path / "b", seed=2)])
    assert settings.differences(runs) == {"seed": ["1", "2"], "layer_decay": ["0.9", "-"]}


def test_run_without_a_record(tmp_path):
    example.write_lines(tmp_path / "metrics.jsonl", example.METRICS)
    (run,) = run_files.read([tmp_path])
    assert (settings.tables(run), settings.environment(run)) == ({}, {})


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), ([], "-"), (1e-12, "1e-12"), ([1, None], "1, -"), (True, "true"), ({"a": 1}, '{"a": 1}')]
)
def test_values_as_a_person_writes_them(value, text):
    assert settings.text(value) == text
