"""What is said of input that cannot be used."""

import pytest


def refusal(kind, call, *args, **settings):
    """Returns the one line of an error of this kind, which a call must end in."""
    with pytest.raises(kind) as caught:
        call(*args, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)
