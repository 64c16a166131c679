"""Which ranks record, as it is given in a program and on the command line."""

import pytest

from deepscope.capture.options import RecordingOptions, checked_ranks, first_rank, is_chosen
from deepscope.errors import OptionError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, {3}),
        ([0, 8], {0, 8}),
        (range(2, 5), {2, 3, 4}),
        ("0,8-11", {0, 8, 9, 10, 11}),
        (" 1 , 3-3 ", {1, 3}),
        (("0-1", "7"), {0, 1, 7}),
        (["0", 5], {0, 5}),
        ([], set()),
    ],
)
def test_numbers_and_ranges_name_ranks(given, expected):
    assert checked_ranks(given) == expected
    assert checked_ranks(checked_ranks(given)) == expected
    assert [rank for rank in range(20) if is_chosen(checked_ranks(given), rank, 0)] == sorted(expected)


def test_all_is_what_nothing_is():
    assert checked_ranks("all") is None
    assert is_chosen(None, 7, 3)
    assert RecordingOptions(ranks="all").ranks is None


def test_hosts_is_the_first_rank_of_each():
    choice = checked_ranks("hosts")
    assert checked_ranks(("hosts",)) == checked_ranks(choice) == choice
    assert [rank for rank in range(8) if is_chosen(choice, rank, rank % 4)] == [0, 4]


@pytest.mark.parametrize(
    "given",
    [-1, [-1], [True], "8-3", "", "a", "1,,2", "1-", "0x1", "hosts,3", [0.5], ["hosts", 1], "²", range, iter([0])],
)
def test_anything_else_is_told(given):
    with pytest.raises(OptionError, match="must be rank numbers"):
        RecordingOptions(ranks=given)


def test_more_ranks_than_there_can_be_are_refused_at_once():
    with pytest.raises(OptionError, match="at most"):
        checked_ranks("0-999999999")


@pytest.mark.parametrize(("given", "first"), [(None, 0), ("hosts", 0), ("4-9,2", 2), ([], 0)])
def test_the_lowest_one_is_the_first(given, first):
    assert first_rank(None if given is None else checked_ranks(given)) == first
