import pytest

from bert_tf.extensions.report import charts


@pytest.fixture(autouse=True, scope="module")
def _drawn(drawn_picture):
    """Pictures are drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "svg", drawn_picture)
        yield
