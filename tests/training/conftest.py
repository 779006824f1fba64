import pytest

from bert_tf.training import fine_tune


@pytest.fixture(autouse=True)
def _alone(monkeypatch, caplog):
    """No folders of this machine, no page (see tests/integration), and the log is kept."""
    for name in ("GLUE_DIR", "BERT_BASE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fine_tune.results, "write_page", lambda _: None)
    caplog.set_level("INFO")
