"""What tests of several files share."""

import pytest

from tests.estimator import toy


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory):
    """Where trainings of the toy's model begin."""
    return toy.restore_plan(tmp_path_factory.mktemp("pretrained"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory, pretrained):
    """A run of 18 steps, never interrupted; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    toy.train(folder, restore=pretrained)
    return folder
