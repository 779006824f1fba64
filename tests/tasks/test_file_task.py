"""Tasks with a file for each split."""

from __future__ import annotations

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks import registry


@pytest.mark.parametrize(
    ("task", "split", "looked_for"),
    [
        ("SQuAD", "train", "train-v1*.json or train-v*.json"),
        ("SQuAD", "test", "test-v1*.json or test-v*.json or dev-v1*.json or dev-v*.json"),
        ("SWAG", "dev", "val.csv"),
    ],
)
def test_a_folder_without_the_file_is_one_line_that_says_what_was_looked_for(task, split, looked_for, tmp_path):
    with pytest.raises(DataError) as caught:
        registry.get_task(task).examples(tmp_path, split)
    assert str(caught.value).startswith(f"{tmp_path}: no file {looked_for}")
    assert "\n" not in str(caught.value)
