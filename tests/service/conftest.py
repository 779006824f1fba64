from __future__ import annotations

import pytest

from tests.tiny import write_project


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("project") / "tiny", layers=1)
