from __future__ import annotations

import pytest

from tests.batch.runs import write_run
from tests.tiny import write_project


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("project") / "tiny", layers=1)


@pytest.fixture(scope="session")
def run(tmp_path_factory, project):
    """A run of one checkpoint; not to be changed."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", project, steps=(20,))
