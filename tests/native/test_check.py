"""The check notices what is wrong, and passes what is right."""

import functools

import pytest
import tensorflow as tf

from bert_tf.native import check

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_passes_what_is_right(kernels, dtype):
    assert dtype in kernels.DTYPES
    check.check(dtype)


# By operation: the part of the check that looks at it, and what it might compute instead, given the operation as it is.
WRONG = {
    "kept": ("_check_kept", lambda right, seed, dropped, size: right(seed, dropped + 1, size)),
    "kept_weights": ("_check_kept", lambda right, seed, dropped, *where: right(seed, dropped + 1, *where)),
    "gelu": ("_gelu", lambda right, *inputs, **options: right(*inputs, **options) * 1.0001),
    "plus_low_rank": ("_low_rank", lambda right, *inputs, scaling: right(*inputs, scaling=scaling * 1.001)),
    "norm": ("_norm", lambda right, x, *weights, **parts: right(x + tf.stop_gradient(x * 1e-3), *weights, **parts)),
    "attention": (
        "_attention",
        lambda right, rows, biases, hidden, *rest, **ways: right(rows, biases, hidden * 0.0, *rest, **ways),
    ),
    "adamw": ("_check_update", lambda right, epsilon, **inputs: right(epsilon=epsilon * 1000, **inputs)),
    "made_current": ("_check_made_current", lambda right, epsilons, **inputs: right(epsilons=epsilons + 0.01, **inputs)),
}
PARTS = {"_product", "_check_norm", *(part for part, _ in WRONG.values())}


@pytest.mark.parametrize("name", WRONG)
def test_notices_what_is_wrong(kernels, monkeypatch, name):
    (part, wrong), right = WRONG[name], getattr(kernels, name)
    for other in PARTS - {part}:
        monkeypatch.setattr(check, other, lambda *_: ())
    monkeypatch.setattr(check.ops, name, functools.partial(wrong, right))
    with pytest.raises(check.WrongError):
        check.check(tf.float32)
