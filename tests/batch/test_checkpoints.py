"""Which checkpoints a name stands for."""

from pathlib import Path

import pytest

from bert_tf.batch.checkpoints import named
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError

STEPS = ["run/model.ckpt-9", "run/model.ckpt-20", "run/model.ckpt-100"]
SEEDS = ["seed-1/model.ckpt-5", "seed-2/model.ckpt-6"]


@pytest.fixture(autouse=True)
def _folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    others = ["base/bert_model.ckpt", "base/model.ckpt-1", "kept/model.ckpt-9", "kept/best/model.ckpt-3"]
    for path in map(Path, [STEPS[0], STEPS[2], STEPS[1], *SEEDS, *others]):
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".index", ".data-00000-of-00001"):
            path.with_name(path.name + suffix).touch()
        path.with_name("checkpoint").write_text(f'model_checkpoint_path: "{path.name}"\n')
    Path("empty").mkdir()
    Path("run/features").mkdir()


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        *((f"run/model.ckpt-9{suffix}", STEPS[:1]) for suffix in ("", ".index", ".data-00000-of-00001")),
        *((name, STEPS[1:2]) for name in ("run", "run/")),  # the last to be saved
        ("base", ["base/bert_model.ckpt"]),
        *((name, STEPS) for name in ("run:all", "run/*", "run/model.ckpt-*", "run/model.ckpt-*.index")),
        ("run/model.ckpt-[12]*", STEPS[1:]),
        ("kept", ["kept/best/model.ckpt-3"]),
        ("kept:all", ["kept/model.ckpt-9"]),
        ("kept/*", ["kept/model.ckpt-9", "kept/best/model.ckpt-3"]),
        *((name, SEEDS) for name in ("seed-*", "seed-*:all")),
        *((name, SEEDS[:1]) for name in ("./seed-1", "seed-1//model.ckpt-5", "seed-2/../seed-1:all", "./seed-1/*")),
        ("run/model.ckpt-8", ["run/model.ckpt-8"]),  # whether it exists is found out by reading it
    ],
)
def test_names(name, prefixes):
    checkpoints = named([name, prefixes[0], name])  # each checkpoint once
    assert [checkpoint.prefix for checkpoint in checkpoints] == prefixes
    assert all(checkpoint.problem is None for checkpoint in checkpoints)


def test_a_folder_whose_name_looks_like_a_pattern_is_that_folder():
    Path("run").rename("run [2]")
    assert [checkpoint.prefix for checkpoint in named(["run [2]"])] == ["run [2]/model.ckpt-20"]
    assert [checkpoint.prefix for checkpoint in named(["run [2]/model.ckpt-9"])] == ["run [2]/model.ckpt-9"]
    assert len(named(["run [2]:all"])) == len(STEPS)
    assert [checkpoint.prefix for checkpoint in named(["run ?2]"])] == ["run [2]/model.ckpt-20"]


@pytest.mark.parametrize("name", ["distilbert-base-uncased", "google/bert_uncased_L-2_H-128_A-2", "BAAI/bge-small-en-v1.5"])
def test_a_name_on_the_hub_is_said_to_be_one(name):
    with pytest.raises(CheckpointError, match=f"; if it is a model of the Hugging Face hub: hub:{name}$"):
        CheckpointReader(name)
    with pytest.raises(CheckpointError, match="no checkpoint of this name$"):
        CheckpointReader("empty/model.ckpt-7")


def test_checkpoints_are_in_the_order_of_the_names_without_those_that_a_killed_training_has_not_listed(caplog):
    checkpoints = named(["run/model.ckpt-100", "run:all", "base"])
    assert [(one.prefix, one.step) for one in checkpoints] == [
        *zip([STEPS[2], *STEPS[:2]], (100, 9, 20)),
        ("base/bert_model.ckpt", None),
    ]
    listed = "".join(f'all_model_checkpoint_paths: "model.ckpt-{step}"\n' for step in (9, 20))
    Path("run/checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-20"\n{listed}')
    assert [checkpoints.prefix for checkpoints in named(["run:all"])] == STEPS[:2]
    assert caplog.messages == ["run: not in the list of checkpoints, so left out: model.ckpt-100"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        *((name, "no checkpoint in the folder") for name in ("empty", "empty:all")),
        *((name, "no checkpoint matches") for name in ("empty/*", "other-*")),
        ("other:all", "no checkpoint or folder of this name"),
    ],
)
def test_a_name_without_checkpoints_has_a_problem(name, problem):
    assert [tuple(checkpoint) for checkpoint in named([name])] == [(name, f"{name}: {problem}")]
