"""Models on their way to workers."""

import bert_tf
from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.extensions.cluster import shipped
from bert_tf.extensions.export.exported_model import ExportedModel
from tests.extensions.export.runs import MRPC, PAIRS, write_run


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
