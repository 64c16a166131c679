"""Quantiles of Student's t distribution, by the finite series for whole degrees of freedom.

Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

LIKE_NORMAL = 200
"""From so many degrees of freedom on the normal distribution stands in: it differs by less than a percent."""


def two_sided_quantile(alpha: float, degrees: float) -> float:
    """The t that a variable is beyond, on either side, with probability `alpha`.

    Degrees of freedom are rounded down to a whole number, at least 1, which makes intervals wider rather than narrower.
    """
    alpha = min(max(alpha, 1e-12), 1.0)
    if degrees >= LIKE_NORMAL:
        return NormalDist().inv_cdf(1 - alpha / 2)
    return _quantile(alpha, max(1, int(degrees)))


@lru_cache(maxsize=4096)
def _quantile(alpha: float, degrees: int) -> float:
    low, high = 0.0, math.pi / 2
    for _ in range(54):  # as many bits as a float has
        middle = (low + high) / 2
        if _within(middle, degrees) < 1 - alpha:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def _within(theta: float, degrees: int) -> float:
    """The probability of being within ±t, where `theta` is the arc tangent of t by the root of the degrees."""
    sine, cosine = math.sin(theta), math.cos(theta)
    if degrees % 2:
        term, total = cosine, 0.0
        for place in range(1, degrees - 1, 2):
            total += term
            term *= (place + 1) / (place + 2) * cosine * cosine
        return 2 / math.pi * (theta + sine * total)
    term, total = 1.0, 0.0
    for place in range(0, degrees - 1, 2):
        total += term
        term *= (place + 1) / (place + 2) * cosine * cosine
    return sine * total
