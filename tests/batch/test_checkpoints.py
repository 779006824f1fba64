"""Which checkpoints a name stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bert_tf.batch.checkpoints import Named, named


def save(prefix: str) -> None:
    path = Path(prefix)
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".index", ".data-00000-of-00001"):
        path.with_name(path.name + suffix).touch()
    path.with_name("checkpoint").write_text(f'model_checkpoint_path: "{path.name}"\n')


@pytest.fixture(autouse=True)
def _folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for prefix in ("run/model.ckpt-9", "run/model.ckpt-100", "run/model.ckpt-20", "seed-1/model.ckpt-5", "seed-2/model.ckpt-6"):
        save(prefix)
    save("base/bert_model.ckpt")
    save("base/model.ckpt-1")
    Path("empty").mkdir()
    Path("run/features").mkdir()
    save("kept/model.ckpt-9")
    save("kept/best/model.ckpt-3")


STEPS = ["run/model.ckpt-9", "run/model.ckpt-20", "run/model.ckpt-100"]


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        ("run/model.ckpt-9", ["run/model.ckpt-9"]),
        ("run/model.ckpt-9.index", ["run/model.ckpt-9"]),
        ("run/model.ckpt-9.data-00000-of-00001", ["run/model.ckpt-9"]),
        ("run", ["run/model.ckpt-20"]),  # the last to be saved
        ("run/", ["run/model.ckpt-20"]),
        ("base", ["base/bert_model.ckpt"]),
        ("run:all", STEPS),
        ("run/*", STEPS),
        ("kept", ["kept/best/model.ckpt-3"]),
        ("kept:all", ["kept/model.ckpt-9"]),
        ("kept/*", ["kept/model.ckpt-9", "kept/best/model.ckpt-3"]),
        ("run/model.ckpt-*", STEPS),
        ("run/model.ckpt-*.index", STEPS),
        ("run/model.ckpt-[12]*", STEPS[1:]),
        ("seed-*", ["seed-1/model.ckpt-5", "seed-2/model.ckpt-6"]),
        ("seed-*:all", ["seed-1/model.ckpt-5", "seed-2/model.ckpt-6"]),
    ],
)
def test_names(name, prefixes):
    assert [str(Path(found.prefix)) for found in named([name])] == prefixes
    assert all(found.problem is None for found in named([name]))


@pytest.mark.parametrize("name", ["./seed-1", "seed-1//model.ckpt-5", "seed-2/../seed-1:all", "./seed-1/*"])
def test_a_checkpoint_has_one_name_however_its_path_is_spelled(name):
    assert named(["seed-1", name]) == [Named("seed-1/model.ckpt-5")]


def test_each_checkpoint_stands_once_in_the_order_of_the_names():
    assert [found.prefix for found in named(["run/model.ckpt-100", "run:all"])] == [STEPS[2], *STEPS[:2]]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("empty", "no checkpoint in the folder"),
        ("empty:all", "no checkpoint in the folder"),
        ("empty/*", "no checkpoint matches"),
        ("other-*", "no checkpoint matches"),
        ("other:all", "no checkpoint and no folder of this name"),
    ],
)
def test_a_name_that_stands_for_nothing_says_so(name, problem):
    assert named([name]) == [Named(name, f"{name}: {problem}")]


def test_whether_a_plain_name_exists_is_told_by_reading_it():
    assert named(["run/model.ckpt-8"]) == [Named("run/model.ckpt-8")]


def test_steps_of_names():
    assert [Named(prefix).step for prefix in ("a/model.ckpt-343", "a-7/bert_model.ckpt")] == [343, None]


def test_all_leaves_out_what_a_killed_training_has_not_listed(caplog):
    listed = "".join(f'all_model_checkpoint_paths: "model.ckpt-{step}"\n' for step in (9, 20))
    Path("run/checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-20"\n{listed}')
    assert [found.prefix for found in named(["run:all"])] == STEPS[:2]
    assert caplog.messages == ["run: not in the list of checkpoints, so left out: model.ckpt-100"]
