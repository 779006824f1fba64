"""What tests of several files share."""

from __future__ import annotations

import pytest

from tests.estimator import toy


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory):
    """Where trainings of the toy's model begin."""
    return toy.restore_plan(tmp_path_factory.mktemp("pretrained"))
