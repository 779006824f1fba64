"""Configurations made of keyword values: as the flags make them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bert_tf.errors import FlagError
from bert_tf.jobs.fine_tune_config import SETTINGS, configured
from tests import classifier_flags
from tests.toy_tags import TagTask

ROWS = list(SETTINGS)


def parsed(*arguments: str):
    return classifier_flags.parse(["run_classifier.py", "--task_name=MRPC", *arguments])


def test_defaults_are_those_of_the_flags():
    assert configured(task_name="MRPC") == configured(task_name="MRPC", data_dir=None) == parsed()


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        ({"num_train_epochs": 3, "do_train": True}, ["--num_train_epochs=3", "--do_train"]),
        ({"published_layout": True, "fused_adam": True}, ["--published_layout", "--fused_adam"]),
        ({"xla": True, "output_dir": Path("out/x")}, ["--xla", "--output_dir=out/x"]),
        ({"seeds": "1-3", "train_batch_size": np.int64(8)}, ["--seeds=1-3", "--train_batch_size=8"]),
        ({"freeze": "embeddings,0-1", "learning_rate": np.float32(0.5)}, ["--freeze=embeddings,0-1", "--learning_rate=0.5"]),
    ],
    ids=str,
)
def test_the_same_values_make_the_same_configuration(values, arguments):
    assert configured(task_name="MRPC", **values) == parsed(*arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_train_epoch": 3}, "unknown setting 'num_train_epoch'; did you mean num_train_epochs?"),
        ({"train_batch_size": 0}, "--train_batch_size=0: expected at least 1"),
        ({"ema": 1.0}, "--ema=1: is a decay above 0 and below 1, as 0.999"),
        ({"ema": 0.0}, "--ema=0: is a decay above 0 and below 1, as 0.999"),
        ({"average_last": 3}, "--average_last=3: of which checkpoints? say how often to save, --save_checkpoints_steps=N"),
        ({"average_last": 1}, "--average_last=1: one checkpoint is its own mean; name two or more"),
        (
            {"average_last": 6, "save_checkpoints_steps": 9},
            "--average_last=6: only --keep_checkpoint_max=5 checkpoints are kept",
        ),
        ({"train_batch_size": 2.5}, "--train_batch_size=2.5: expected a whole number"),
        ({"train_batch_size": True}, "--train_batch_size=True: expected a whole number"),
        ({"learning_rate": "high"}, "--learning_rate='high': expected a number"),
        ({"learning_rate": float("nan")}, "flag --learning_rate=nan: not a number up to"),
        ({"learning_rate": None}, "--learning_rate=None: expected a number"),
        ({"do_train": 1}, "--do_train=1: expected True or False"),
        ({"output_dir": ""}, "--output_dir is empty"),
        ({"precision": "flaot16"}, "--precision: unknown value 'flaot16'; did you mean float16?"),
        ({"text_a": "said"}, "--text_a belongs to --task_name=custom; MRPC does not take it"),
        ({"freeze": "head"}, "--freeze: unknown part 'head'"),
        ({"do_eval": False}, "nothing to do: at least one of"),
    ],
    ids=str,
)
def test_refuses_what_the_flags_refuse(values, message):
    with pytest.raises(FlagError) as caught:
        configured(task_name="MRPC", **values)
    assert str(caught.value).startswith(message)


def test_a_task_takes_the_place_of_its_name():
    config = configured(TagTask(), do_train=True)
    assert (config.data.task_name, config.output.output_dir) == (TagTask.name, f"out/{TagTask.name}")


def test_every_setting_is_declared_once():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert {row.name for rows in classifier_flags.GROUPS.values() for row in rows} == set(names)


def test_each_text_is_parsed_in_one_place():
    """`freeze`, `place` and the like: who needs their values asks the settings."""
    package = Path(__file__).resolve().parents[2] / "bert_tf"
    for call in ("parts.parse_frozen(", "placement.parse(", "StepRange.parse("):
        assert [path.name for path in package.rglob("*.py") if call in path.read_text(encoding="utf-8")] == ["settings.py"]
