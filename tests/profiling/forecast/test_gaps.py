"""What the allocator of a GPU needs beside tensors."""

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast import fitting, gaps
from bert_tf.profiling.forecast.compute_options import ComputeOptions
from bert_tf.profiling.forecast.step_peak import forecast


def test_a_step_fits_with_its_gaps():
    found = forecast(BertConfig.tiny(), tokens=8, batch_size=4)
    assert found.gaps == int(found.peak * gaps.share(ComputeOptions())) > 0
    assert not fitting.fits(found, found.needed - 1)
    assert fitting.fits(found, found.needed)


def test_memory_that_is_taken_as_needed_has_more():
    whole, grown = (
        forecast(BertConfig.tiny(), tokens=8, batch_size=4, options=ComputeOptions(growth=growth)) for growth in (False, True)
    )
    assert dataclasses.replace(grown, gaps=whole.gaps) == whole
    assert grown.gaps > whole.gaps


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"defer_embeddings": False}, True),
        ({"replicas": 2}, True),
        ({"defer_embeddings": False, "pack_tokens": False}, False),
        ({"defer_embeddings": False, "frozen": frozenset({"embeddings"})}, False),
        ({"defer_embeddings": False, "host_embeddings": True}, False),
    ],
)
def test_whole_gradients_of_the_table_of_words_leave_more(changes, more):
    assert (gaps.share(ComputeOptions(**changes)) > gaps.share(ComputeOptions())) == more
