"""The nearest vectors are those of brute force."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.vectors.nearest import nearest


def brute_force(queries, vectors, top):
    """Returns numbers of the nearest by all cosines in float64; of equal ones the first."""
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries.astype(float), vectors.astype(float))]
    cosines = np.array([(units[1] * query).sum(axis=1) for query in units[0]])
    return cosines, [np.argsort(-of_query, kind="stable")[:top] for of_query in cosines]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("top", [1, 10, 5000])
def test_equals_brute_force(dtype, top):
    rng = np.random.default_rng(top)
    vectors = (rng.normal(size=(1000, 16)) * rng.lognormal(size=(1000, 1))).astype(dtype)
    vectors[500:520] = vectors[7]  # duplicates come in their order
    vectors[800:900] = vectors[7] * (1 + 1e-3 * rng.normal(size=(100, 16)))  # float32 cannot tell them apart
    queries = np.concatenate([vectors[[7, 801]], rng.normal(size=(3, 16))]).astype(np.float32)
    cosines, expected = brute_force(queries, vectors, top)
    found = nearest(queries, (vectors[start : start + 130] for start in range(0, 1000, 130)), top)
    for of_query, numbers, all_cosines in zip(found, expected, cosines):
        np.testing.assert_array_equal(of_query.numbers, numbers)
        np.testing.assert_allclose(of_query.scores, all_cosines[numbers], rtol=0, atol=1e-12)


def test_a_vector_without_length_is_near_to_nothing():
    (found,) = nearest(np.ones((1, 2), np.float32), [np.array([[0, 0], [1, 0]], np.float32)], 2)
    assert found.numbers.tolist() == [1, 0]
    np.testing.assert_allclose(found.scores, [2**-0.5, 0.0])


def test_of_no_vectors_none_is_near():
    assert nearest(np.ones((1, 2), np.float32), [], 3)[0].numbers.tolist() == []
