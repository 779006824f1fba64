"""What tests of several rooms share."""

from __future__ import annotations

import functools
import pickle

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")

_PICTURES: dict[bytes, str] = {}


@pytest.fixture
def _pictures_drawn_once(monkeypatch):
    """A chart that was drawn in this process is not drawn again: pages of the same run have the same pictures."""
    from bert_tf.report import charts

    def remembering(draw):
        @functools.wraps(draw)
        def remembered(*arguments, **options):
            key = pickle.dumps((draw.__name__, arguments, options))
            if key not in _PICTURES:
                _PICTURES[key] = draw(*arguments, **options)
            return _PICTURES[key]

        return remembered

    for draw in (charts.lines, charts.stacked):
        monkeypatch.setattr(charts, draw.__name__, remembering(draw))
