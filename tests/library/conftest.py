import pytest

from tests.batch.runs import write_run


@pytest.fixture(scope="session")
def run(tmp_path_factory, project):
    """A run of one checkpoint; not to be changed."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", project, steps=(20,))
