"""The library of kernels, as the tests of this room and others have it: built at most once."""

from __future__ import annotations

import os

import pytest

from bert_tf.native import loading, ops


@pytest.fixture(scope="session")
def kernels():
    """The operations, loaded; there has to be a C++ compiler."""
    assert loading.use(os.environ), loading.state(os.environ)
    return ops
