"""Whether another checkpoint stands for a run."""

from __future__ import annotations

import pytest

from bert_tf.service.service import Watch


@pytest.mark.parametrize(
    ("files", "watched", "changed", "answers"),
    [
        (["checkpoint"], "", "checkpoint", [False, True, False]),  # once it has come to rest
        (["checkpoint", "best/checkpoint"], "", "checkpoint", [False, False, False]),
        (["checkpoint", "best/checkpoint"], "", "best/checkpoint", [False, True, False]),
        (["model.ckpt-20.index"], "model.ckpt-20", "model.ckpt-20.index", [False, True, False]),
    ],
)
def test_a_changed_file(tmp_path, files, watched, changed, answers):
    (tmp_path / "best").mkdir()
    for name in files:
        (tmp_path / name).write_text("1")
    watch = Watch(tmp_path / watched)
    assert not watch.has_changed()
    (tmp_path / changed).write_text("20")
    assert [watch.has_changed() for _ in range(3)] == answers


def test_a_run_that_is_gone_is_no_change(tmp_path):
    (tmp_path / "checkpoint").write_text("1")
    watch = Watch(tmp_path)
    (tmp_path / "checkpoint").unlink()
    assert [watch.has_changed() for _ in range(3)] == [False, False, False]
