"""The check notices what is wrong, and passes what is right."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from bert_tf.native import check


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_passes_what_is_right(kernels, dtype):
    assert dtype in kernels.DTYPES
    check.check(dtype)


def kept(kernels, seed, dropped, size):
    return kernels.kept(seed, dropped + 1, size)


def kept_weights(kernels, seed, dropped, *where):
    return kernels.kept_weights(seed, dropped + 1, *where)


def gelu(kernels, x, bias, exact):
    return kernels.gelu(x, bias, exact=exact) * 1.0001


def norm(kernels, x, *weights, **parts):
    return kernels.norm(x + tf.stop_gradient(x * 1e-3), *weights, **parts)


def attention(kernels, rows, biases, hidden, starts, mask, **options):
    return kernels.attention(rows, biases, hidden * 0.0, starts, mask, **options)


def adamw(kernels, *, epsilon, **inputs):
    return kernels.adamw(epsilon=epsilon * 1000, **inputs)


def made_current(kernels, *, epsilons, **inputs):
    return kernels.made_current(epsilons=epsilons + 0.01, **inputs)


WRONG = {function.__name__: function for function in (kept, kept_weights, gelu, norm, attention, adamw, made_current)}


@pytest.mark.parametrize("name", WRONG)
def test_notices_what_is_wrong(kernels, monkeypatch, name):
    right = SimpleNamespace(**{function: getattr(kernels, function) for function in WRONG})
    monkeypatch.setattr(check.ops, name, lambda *inputs, **options: WRONG[name](right, *inputs, **options))
    with pytest.raises(check.WrongError):
        check.check(tf.float32)
