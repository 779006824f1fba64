import pytest

from benchmarks import browser
from bert_tf import __main__ as front
from tests.estimator.conftest import pretrained as pretrained


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    with browser.started(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def call(capsys):
    """Runs a command line; returns its exit status, output and errors."""

    def call(*words):
        status = front.main(["bert_tf", *map(str, words)])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def called(call):
    """Runs a command line; returns its exit status, output and the lines that name an error."""

    def called(*words):
        status, out, err = call(*words)
        return status, out, [line for line in err.splitlines() if line.startswith("error: ")]

    return called
