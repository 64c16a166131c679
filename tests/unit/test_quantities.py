"""Numbers with runs drawn together, and texts that are none."""

from __future__ import annotations

import pytest

from deepscope.quantities import listed, ranges


@pytest.mark.parametrize("numbers", [[], [0], [0, 1, 2, 3, 7], [5, 3, 3, 900], list(range(1024))])
def test_numbers_come_back(numbers: list[int]) -> None:
    assert listed(ranges(numbers)) == tuple(sorted(set(numbers)))


@pytest.mark.parametrize("text", ["", "x", "0,1", "0, ", "0-", "-1", "0-1-2", "\x1b[2J\ud800", "\u0663", "0" * 5000])
def test_another_text_has_no_numbers(text: str) -> None:
    assert listed(text) == ()
