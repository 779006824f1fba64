import sys
from pathlib import Path

import pytest

from benchmarks.comparisons import OWN, PEAK
from benchmarks.materials import Materials, Source
from benchmarks.stage import Bench
from benchmarks.texts import TASKS
from benchmarks.workers import Environments, Limits
from bert_tf.config import BertConfig
from bert_tf.home import SAMPLE
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary

FAKE = (sys.executable, "-S", str(Path(__file__).with_name("fake_worker.py")))


@pytest.fixture
def materials(project, tmp_path) -> Materials:
    folders = {name: project.data_dir if name == "MRPC" else SAMPLE / name for name in TASKS}
    source = Source(
        {name: (get_task(name), folder) for name, folder in folders.items()},
        BertConfig.from_json_file(project.bert_config_file),
        Vocabulary.from_file(project.vocab_file),
        project.init_checkpoint,
    )
    folder = tmp_path / "scratch"
    folder.mkdir()
    return Materials(folder, source)


@pytest.fixture
def bench(materials) -> Bench:
    """Everything is done by fake workers, and keras_hub is not installed."""
    environments = Environments(dict.fromkeys((OWN, PEAK, "transformers"), FAKE), {"keras_hub": "not here"})
    return Bench(materials, environments, rounds=3, steps=4, threads=1, limits=Limits(ready=5, answer=5, quit=2))
