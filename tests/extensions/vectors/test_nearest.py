"""The nearest vectors are those of brute force."""

import numpy as np
import pytest

from bert_tf.extensions.vectors.nearest import nearest


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
    results = nearest(queries, (vectors[start : start + 130] for start in range(0, 1000, 130)), top)
    for of_query, numbers, all_cosines in zip(results, expected, cosines):
        np.testing.assert_array_equal(of_query.numbers, numbers)
        np.testing.assert_allclose(of_query.scores, all_cosines[numbers], rtol=0, atol=1e-12)


def test_a_vector_without_length_is_near_to_nothing_and_of_no_vectors_none_is_near():
    (result,) = nearest(np.ones((1, 2), np.float32), [np.array([[0, 0], [1, 0]], np.float32)], 2)
    assert result.numbers.tolist() == [1, 0]
    np.testing.assert_allclose(result.scores, [2**-0.5, 0.0])
    assert nearest(np.ones((1, 2), np.float32), [], 3)[0].numbers.tolist() == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 5])
def test_a_vector_that_is_not_finite_is_named(row, bad):
    vectors = np.ones((6, 2), np.float32)
    vectors[row, 1] = bad
    with pytest.raises(ValueError, match=f"row {row}, counted from 0, has NaN or infinity"):
        nearest(np.ones((1, 2), np.float32), [vectors[:3], vectors[3:]], 1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "scale"), [("float32", 1e38), ("float32", 1e25), ("float32", 1e-25), ("float64", 1e300), ("float64", 1e-300)]
)
def test_the_order_does_not_depend_on_lengths(dtype, scale):
    rng = np.random.default_rng(0)
    plain = rng.uniform(-1, 1, size=(40, 8)).astype(dtype)
    vectors = plain.copy()
    vectors[10:20] *= scale
    query = rng.normal(size=(1, 8)).astype(np.float32)
    (expected,), (result,) = nearest(query, [plain[:15], plain[15:]], 40), nearest(query, [vectors[:15], vectors[15:]], 40)
    np.testing.assert_array_equal(result.numbers, expected.numbers)
    np.testing.assert_allclose(result.scores, expected.scores, atol=1e-6)
