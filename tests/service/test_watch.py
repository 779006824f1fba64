"""Whether another checkpoint stands for a run."""

from __future__ import annotations

from bert_tf.service.watch import Watch


def test_a_change_counts_when_it_has_come_to_rest(tmp_path):
    (tmp_path / "checkpoint").write_text("1")
    watch = Watch(tmp_path)
    assert not watch.has_changed()
    (tmp_path / "checkpoint").write_text("20")
    assert [watch.has_changed() for _ in range(3)] == [False, True, False]


def test_the_best_checkpoint_goes_before_the_newest(tmp_path):
    (tmp_path / "best").mkdir()
    for folder in (tmp_path, tmp_path / "best"):
        (folder / "checkpoint").write_text("1")
    watch = Watch(tmp_path)
    (tmp_path / "checkpoint").write_text("20")
    assert [watch.has_changed() for _ in range(2)] == [False, False]
    (tmp_path / "best" / "checkpoint").write_text("20")
    assert [watch.has_changed() for _ in range(2)] == [False, True]


def test_a_checkpoint_that_is_replaced(tmp_path):
    index = tmp_path / "model.ckpt-20.index"
    index.write_text("1")
    watch = Watch(tmp_path / "model.ckpt-20")
    index.write_text("20")
    assert [watch.has_changed() for _ in range(2)] == [False, True]


def test_a_run_that_is_gone_is_no_change(tmp_path):
    (tmp_path / "checkpoint").write_text("1")
    watch = Watch(tmp_path)
    (tmp_path / "checkpoint").unlink()
    assert [watch.has_changed() for _ in range(3)] == [False, False, False]
