"""What tests of several rooms share."""

import gc
import importlib.util
import json
import logging
import os

import pytest
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"  # its package reads this when it is imported

from bert_tf import home
from bert_tf.io import log_form
from bert_tf.runtime import quick_import

quick_import.install()  # TensorFlow is imported as the commands import it: in half of the time
settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _log_of_a_fresh_process():
    """A test finds the log as in a fresh process, whichever command ran before it in this one."""
    log_form.choose(log_form.SHORT)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    for handler in [installed for installed in root.handlers if type(installed).__module__ == log_form.__name__]:
        root.removeHandler(handler)


@pytest.fixture(autouse=True, scope="session")
def _kernels_of_the_user():
    """Native kernels are built once for all tests and sessions, whichever folder a test calls its home."""
    place = home.compiled({})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "compiled", lambda _: place)
        yield


@pytest.fixture(scope="session")
def kernels():
    """The native operations, loaded. Without a C++ compiler there are none, and nothing to test."""
    from bert_tf.native import compiler, loading, ops

    if compiler.find(os.environ) is None:
        pytest.skip("no C++ compiler on this machine")
    assert loading.use(os.environ), loading.state(os.environ)
    return ops


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """A project whose model has one layer; not to be changed."""
    from tests.tiny import write_project

    return write_project(tmp_path_factory.mktemp("project") / "tiny", layers=1)


@pytest.fixture(scope="session")
def run(tmp_path_factory, project):
    """A run with checkpoints at steps 20, 100 and 40, the last one the newest; not to be changed."""
    from tests.batch.runs import write_run

    return write_run(tmp_path_factory.mktemp("runs") / "run", project)


@pytest.fixture
def untrained(monkeypatch):
    """Trainings end where they would begin, as by Ctrl-C; a list of the models that would have been trained."""
    from bert_tf.training import training

    models = []

    def make_estimator(model, *_):
        models.append(model)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "make_estimator", make_estimator)
    return models


_PICTURES: dict[str, str] = {}


def pytest_collection_finish():
    """Has Python's collector leave out what is imported, which stays, and look less often at what tests make."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def drawn_picture():
    """Reports have no pictures, which take seconds to draw, unless a test asks for them; returns what draws one."""
    if importlib.util.find_spec("bert_tf.extensions.report") is None:  # an extension, whose folder can be deleted
        yield None
        return
    from bert_tf.extensions.report import charts

    with pytest.MonkeyPatch.context() as patch:
        drawn = charts.svg
        patch.setattr(charts, "svg", lambda _: "")
        yield drawn


@pytest.fixture
def _pictures_drawn_once(monkeypatch, drawn_picture):
    """A chart that was drawn in this process is not drawn again, and pages come without the megabyte of Vega's script."""
    from bert_tf.extensions.report import charts, scripts

    def remembering(chart):
        key = json.dumps(chart)
        if key not in _PICTURES:
            _PICTURES[key] = drawn_picture(chart)
        return _PICTURES[key]

    monkeypatch.setattr(charts, "svg", remembering)
    monkeypatch.setattr(scripts, "vega", lambda: "window.vegaEmbed = null;")
