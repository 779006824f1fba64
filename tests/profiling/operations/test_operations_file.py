from __future__ import annotations

import dataclasses
import json

import pytest
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.profiling.operations import operations_file, step_stats
from tests.profiling import recorded


def test_what_is_read_back_is_what_was_written(tmp_path):
    kernels, gpus = step_stats.kernels_of_space(recorded.space(), 2)
    found = step_stats.operations(recorded.steps(dtype=tf.float16, device=recorded.GPU), kernels)
    record = dataclasses.replace(recorded.record(peak=0.1), operations=found, gpus=gpus)
    operations_file.write(tmp_path / "operations.json", record)
    assert operations_file.read(tmp_path / "operations.json") == record
    assert json.loads((tmp_path / "operations.json").read_text())["operations"][0]["name"] == recorded.BATCH


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"operations": [{}], "gpus": {}}', '{"operations": [], "gpus": {}, "more": 1}']
)
def test_another_file_is_a_problem_of_one_line(tmp_path, text):
    path = tmp_path / "operations.json"
    path.write_text(text)
    with pytest.raises(DataError, match="this is not a list of operations as --profile_steps writes it; record it again"):
        operations_file.read(path)
