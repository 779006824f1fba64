from __future__ import annotations

import pytest

import bert_tf
from bert_tf.errors import FlagError
from tests import texts
from tests.tiny import write_project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("project") / "tiny", layers=1)


def test_a_call_returns_the_folder_to_fine_tune_from(project, tmp_path):
    text = texts.write(tmp_path / "text.txt", texts.documents(12))
    model = {"init_checkpoint": project.init_checkpoint, "max_seq_length": 24}
    small = {"num_train_steps": 1, "train_batch_size": 2, "held_out_documents": 2, **model}
    folder = bert_tf.pretrain(text, output_dir=tmp_path / "out", **small)
    assert folder == tmp_path / "out"
    assert (folder / "report.html").is_file()
    assert {path.name for path in folder.iterdir()} >= {"vocab.txt", "bert_config.json", "checkpoint", "eval_results.json"}


def test_several_seeds_are_several_calls():
    with pytest.raises(FlagError, match="call it once for each seed"):
        bert_tf.pretrain(seeds="1-3")
