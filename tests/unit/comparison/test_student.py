"""Quantiles of Student's t agree with the printed tables, and with what is drawn."""

import numpy as np
import pytest

from deepscope.comparison.noise import two_sided_quantile

TABLE = [
    (0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 3, 3.182), (0.05, 4, 2.776), (0.05, 10, 2.228), (0.05, 30, 2.042),
    (0.05, 120, 1.980), (0.01, 1, 63.657), (0.01, 2, 9.925), (0.01, 5, 4.032), (0.01, 20, 2.845), (0.001, 1, 636.619),
    (0.001, 3, 12.924), (0.001, 9, 4.781), (0.5, 1, 1.0), (0.5, 7, 0.711),
]  # fmt: skip
"""Two-sided level, degrees of freedom, quantile (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2)."""


@pytest.mark.parametrize(("alpha", "degrees", "quantile"), TABLE)
def test_the_quantiles_are_those_of_the_tables(alpha: float, degrees: int, quantile: float) -> None:
    assert two_sided_quantile(alpha, degrees) == pytest.approx(quantile, abs=6e-4)


def test_degrees_are_rounded_down_and_many_are_like_the_normal_distribution() -> None:
    assert two_sided_quantile(0.05, 3.9) == two_sided_quantile(0.05, 3)
    assert two_sided_quantile(0.05, 0.2) == two_sided_quantile(0.05, 1)
    assert two_sided_quantile(0.05, float("inf")) == pytest.approx(1.95996, abs=1e-5)
    assert two_sided_quantile(0.05, 199) == pytest.approx(1.95996, rel=0.01)


@pytest.mark.parametrize("degrees", [2, 5])
@pytest.mark.parametrize("alpha", [0.2, 0.01])
def test_so_much_of_what_is_drawn_lies_beyond(alpha: float, degrees: int) -> None:
    drawn = np.random.default_rng(1).standard_t(degrees, 400_000)
    assert np.mean(np.abs(drawn) > two_sided_quantile(alpha, degrees)) == pytest.approx(alpha, rel=0.05)


def test_a_smaller_level_is_farther_out() -> None:
    for degrees in (1, 2, 9, 150):
        found = [two_sided_quantile(alpha, degrees) for alpha in (1, 0.5, 0.05, 1e-4, 1e-9)]
        assert found == sorted(found)
        assert found[0] == pytest.approx(0, abs=1e-6)
