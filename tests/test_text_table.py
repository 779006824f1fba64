from __future__ import annotations

import pytest

from bert_tf.text_table import counted


@pytest.mark.parametrize(("number", "said"), [(0, "0 words"), (1, "1 word"), (2000, "2,000 words")])
def test_one_thing_has_no_plural(number, said):
    assert counted(number, "word") == said
