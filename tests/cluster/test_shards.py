"""Names of outputs that Apache Beam writes."""

from __future__ import annotations

import pytest

from bert_tf.cluster import shards
from bert_tf.errors import FlagError


@pytest.mark.parametrize("output", ["/out/[a].tsv", "/out[1]/a.tsv", "gs://bucket/a?.tsv", "/out/*.tsv"])
def test_a_name_that_beam_would_read_as_a_pattern_is_refused_before_anything_is_computed(output):
    with pytest.raises(FlagError, match=r"reads \*, \? and \[ in a name as a pattern"):
        shards.of(output)
