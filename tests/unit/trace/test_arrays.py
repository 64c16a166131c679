"""Operations on arrays, held against NumPy's own."""

import numpy as np
import pytest

from deepscope.trace.arrays import distinct_places, distinct_values, stable_order

CASES = {
    "nothing": [],
    "one": [-1],
    "close together": [5, 3, 5, -1, 4, 3],
    "far apart": [2**62, -(2**62), 7, 2**62],
    "just too far for a table": [0, 4 * 2 + (1 << 16)],
    "many": np.random.default_rng(0).integers(-1, 500, 10_000),
}


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("case", CASES)
def test_distinct_places_are_those_of_unique(case, dtype):
    values = np.asarray(CASES[case], np.int64).astype(dtype)
    found, place = distinct_places(values)
    expected, inverse = np.unique(values, return_inverse=True)
    assert found.tolist() == expected.tolist() == distinct_values(values).tolist()
    assert place.tolist() == inverse.tolist()
    assert found.dtype == place.dtype == np.int64


@pytest.mark.parametrize("most", [1, 10, (1 << 15) - 1, 1 << 15, 1 << 40])
def test_a_stable_order_leaves_equals_as_they_stand(most):
    values = np.random.default_rng(1).integers(0, most, 3_000, endpoint=True)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_nothing_has_an_order():
    assert stable_order(np.zeros(0, np.int64)).tolist() == []
