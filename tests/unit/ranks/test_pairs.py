"""Point-to-point messages by pair."""

from __future__ import annotations

from deepscope.ranks.side_by_side import side_by_side
from matched_ranks import Call, rank


def send(start: int, end: int, peer: int, *, size: int = 1000, step: int = -1) -> Call:
    return Call(start, end, "send", "0-2", size, step, peer=peer)


def receive(start: int, end: int, peer: int, *, size: int = 1000, step: int = -1) -> Call:
    return Call(start, end, "recv", "0-2", size, step, peer=peer)


def test_messages_are_found_on_both_sides_by_pair_and_order() -> None:
    ranks = [
        rank(0, [send(0, 30, 1), send(40, 50, 2, size=64), send(100, 120, 1)], world=3),
        rank(1, [receive(20, 30, 0), receive(90, 120, 0), send(130, 140, 0)], world=3),
        rank(2, [receive(10, 50, 0, size=64)], world=3),
    ]
    report = side_by_side(ranks)
    found = {(row.source, row.target): row for row in report.pairs}
    assert set(found) == {(0, 1), (0, 2), (1, 0)}
    one = found[0, 1]
    assert (one.messages, one.bytes, one.time_ns, one.transfer_ns) == (2, 2000, 10 + 30, 10 + 20)
    assert (found[0, 2].bytes, found[0, 2].time_ns, found[0, 2].transfer_ns) == (64, 40, 10)
    unmet = found[1, 0]  # nobody received it within the window
    assert (unmet.messages, unmet.time_ns, unmet.transfer_ns) == (1, 10, None)
    assert report.collectives == []


def test_windows_that_begin_apart_bring_only_the_same_messages_together() -> None:
    ranks = [
        rank(0, [send(100 * i, 100 * i + 50, 1, step=i // 2) for i in range(4)]),
        rank(1, [receive(100 * i + 20, 100 * i + 50, 0, step=i // 2) for i in range(2, 4)]),
    ]
    (row,) = side_by_side(ranks).pairs
    assert (row.messages, row.transfer_ns) == (4, 60)
    assert row.bytes_per_s == round(2 * 1000 / 60 * 10**9)


def test_messages_that_cannot_be_told_from_each_other_have_no_transfer() -> None:
    ranks = [
        rank(0, [send(100 * i, 100 * i + 50, 1) for i in range(6)]),
        rank(1, [receive(100 * i, 100 * i + 30, 0) for i in range(3)]),
    ]
    (row,) = side_by_side(ranks).pairs
    assert (row.messages, row.time_ns, row.transfer_ns) == (6, 90, None)
    assert row.bytes_per_s == round(3 * 1000 / 90 * 10**9)


def test_a_message_of_an_unknown_peer_is_no_pair() -> None:
    assert side_by_side([rank(0, [send(0, 10, -1)]), rank(1, [receive(0, 10, -1)])]).pairs == []
