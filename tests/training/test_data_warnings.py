"""What is said of data that a run can use, but hardly was meant to."""

import re
import shutil

import pytest
import tensorflow as tf

from bert_tf.runtime.machine import Machine
from bert_tf.training import checks, preparation, run
from tests import classifier
from tests.tiny import write_project


def test_rows_of_dev_that_are_trained_on_and_texts_that_are_mostly_cut_are_warnings(tmp_path, caplog):
    project = write_project(tmp_path / "project", layers=1)
    flags = {"do_train": True, "do_eval": True, "max_seq_length": 6}

    def warnings():
        caplog.clear()
        parsed = classifier.parse(
            ["run_classifier.py", *(flag for flag in project.flags(tmp_path / "out", **flags) if flag != "--data_dir=None")]
        )
        made = preparation.prepare(parsed, Machine(tf.compat.v1.ConfigProto()), environment={})
        checks.check(made)
        run.features(made, "dev")
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    shutil.copy(project.data_dir / "train.tsv", project.data_dir / "dev.tsv")
    leak, cut = warnings()
    assert leak == "dev: 40 of 40 rows are in train too, so their scores say little: dev-1, dev-2, dev-3, ..."
    of_long = "add --long_text=windows or head_tail (docs/tasks.md)"
    assert cut == f"dev: 100 % of the examples lose text at --max_seq_length=6; raise it, or {of_long}"
    write_project(tmp_path / "another", layers=1)
    shutil.copy(tmp_path / "another" / "data" / "dev.tsv", project.data_dir)
    flags["max_seq_length"] = 24
    assert not any("lose text" in message for message in warnings())
    dev = project.data_dir / "dev.tsv"
    dev.write_text(dev.read_text(encoding="utf-8").replace("o", "\u0436"), encoding="utf-8")
    assert any(re.match(r"dev: \d+ % of the pieces are \[UNK\]", message) for message in warnings())
    flags.update(class_weights="balanced", eval_every_n_steps=5)
    assert any(message.endswith("try --best_metric=f1") for message in warnings())
    flags.update(best_metric="loss")
    assert not any("--best_metric" in message for message in warnings())
    own = tmp_path / "own.csv"
    own.write_text("text,label\n" + "rain,a\nsoup,b\n" * 10)
    flags.update(task_name="custom", data_dir=None, train_file=own, dev_file=own, labels="a,b,c")
    assert "train: no row has the label c, which will not be learned; --labels lists the classes" in warnings()


@pytest.mark.parametrize(("flags", "lower_case"), [({}, False), ({"do_lower_case": True}, True)])
def test_the_casing_of_a_hugging_face_folder_is_that_of_its_tokenizer_unless_it_is_given(tmp_path, caplog, flags, lower_case):
    project = write_project(tmp_path / "project", layers=1)
    pieces = project.vocab_file.read_text().split()  # of which few have a capital: a doubtful sign
    project.vocab_file.write_text("\n".join([piece.title() if piece in ("the", "old") else piece for piece in pieces]))
    (project.vocab_file.parent / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    parsed = classifier.parse(["run_classifier.py", *project.flags(tmp_path / "out", do_train=True, **flags)])
    made = preparation.prepare(parsed, Machine(tf.compat.v1.ConfigProto()), environment={})
    assert (made.spec.data.do_lower_case, made.weights.lower_case) == (lower_case, lower_case)
    checks.check(made)
    assert ("which may not suit the model" in caplog.text) == lower_case
