"""What tests of sweeps share."""

import pytest

from bert_tf.extensions.sweep.plan import GLUE
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.training import results


@pytest.fixture(scope="module", autouse=True)
def _without_page():
    """No page is drawn of a run; see tests/integration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "write_page", lambda _: None)
        yield


@pytest.fixture
def glue(tmp_path):
    """An environment that names its folder, of which nothing is read but sizes."""
    for name in GLUE:
        folder, task = tmp_path / "glue" / name, get_task(name)
        folder.mkdir(parents=True)
        for split in (*task.split_names.get(TRAIN, (TRAIN,)), *task.split_names.get(DEV, (DEV,))):
            (folder / f"{split}.tsv").write_text("It rained all night.\t1\n" * 10)
    return {"GLUE_DIR": str(tmp_path / "glue")}
