"""Models on their way to workers: whole, in a folder of the user alone, as long as somebody uses them."""

import os
import tempfile
import time
from types import SimpleNamespace

import pytest

import bert_tf
from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.errors import OutputError
from bert_tf.extensions.cluster import frames, shipped
from bert_tf.extensions.export.exported_model import ExportedModel
from tests.extensions.export.runs import MRPC, PAIRS, write_run

DAY_S = 86400


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"bert_tf-{os.getuid()}"


def made(name: str):
    return shipped.made_once(name, lambda folder: (folder / "model").touch())


def test_a_copy_is_made_once_in_a_folder_of_this_user_alone(home):
    assert made("a") == home / "a"
    assert shipped.made_once("a", None) == home / "a"
    assert home.stat().st_mode & 0o777 == 0o700
    (home / "a" / "model").unlink()  # as a system clears /tmp
    assert (made("a") / "model").is_file()


def test_a_copy_that_nobody_uses_goes_when_another_is_made(home):
    for name in ("old", "used", "new"):
        made(name)
    killed = [f".{name}.4711-0a1b2c3d.tmp" for name in ("other", "another", "late")]  # of processes that were killed
    for name in killed:
        (home / name).mkdir()
    for name, days in (("old", 1.1), ("used", 9), ("new", 0.9), (killed[0], 1.1)):
        os.utime(home / name, (time.time() - days * DAY_S,) * 2)
    made("used")
    made("another")
    assert sorted(path.name for path in home.iterdir()) == [killed[2], "another", "new", "used"]


def test_a_model_is_sent_once_to_a_spark_context(tmp_path, monkeypatch):
    sent = []
    context = SimpleNamespace(listFiles=sent, addFile=sent.append)
    frame = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context, conf={}))
    model = SimpleNamespace(max_seq_length=8, lower_case=True, long_text=None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shipped, "pack", lambda _, folder: folder / "model.tar")
    for _ in range(3):
        assert frames.sent(model, frame, frames.Work("x", {}, frames.FrameSettings())).model == "model.tar"
    assert len(sent) == len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("fault", ["link", "file", "mode", "owner"])
def test_a_folder_that_others_can_write_is_not_used(home, fault, tmp_path):
    if fault == "link":
        (tmp_path / "mine").mkdir()
        home.symlink_to(tmp_path / "mine")
    elif fault == "file":
        home.touch()
    elif fault == "mode":
        home.mkdir()
        home.chmod(0o777)
    elif os.geteuid() == 0:
        home.mkdir()
        os.chown(home, 12345, -1)
    else:
        pytest.skip("only root can give folders away")
    with pytest.raises(OutputError, match="not a folder that only this user can write; delete it, or set TMPDIR"):
        made("a")


def test_an_exported_model_arrives_as_it_is(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", MRPC)
    with bert_tf.load(run) as model:
        folder = model.export("onnx", tmp_path / "exported")
    (tmp_path / "sent").mkdir()
    packed = shipped.pack(loading.load(str(folder / "model.onnx"), ModelOverrides()), tmp_path / "sent")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    arrived = loading.load(shipped.unpacked(str(packed)), ModelOverrides())
    assert isinstance(arrived, ExportedModel)
    with bert_tf.load(arrived.folder) as model, bert_tf.load(folder) as other:
        assert model.predict(PAIRS) == other.predict(PAIRS)
