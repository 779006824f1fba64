"""Data of GLUE of which nothing is read but the size."""

from __future__ import annotations

import pytest

from bert_tf.sweeps.plan import GLUE
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.registry import get_task


@pytest.fixture
def glue(tmp_path):
    """An environment that names its folder."""
    for name in GLUE:
        folder, task = tmp_path / "glue" / name, get_task(name)
        folder.mkdir(parents=True)
        for split in (*task.split_names.get(TRAIN, (TRAIN,)), *task.split_names.get(DEV, (DEV,))):
            (folder / f"{split}.tsv").write_text("It rained all night.\t1\n" * 10)
    return {"GLUE_DIR": str(tmp_path / "glue")}
