"""What it takes to move the data of collectives, set in merged profiles: by the calls matched over their ranks."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from deepscope.ranks.arrivals import Arrivals
from deepscope.ranks.calls import RowKey, key_of
from deepscope.ranks.matching import Matches
from deepscope.records import Profile


def set_transfers(merged: Profile, matches: Matches, arrivals: Arrivals) -> None:
    """Sets `shortest_ns` of the merged profile's collectives: of rows whose every call is found on all ranks."""
    calls, shortest = matches.calls, defaultdict[RowKey, list[int]](list)
    counts = np.zeros(len(calls.rows), np.int64)
    rows = np.flatnonzero(matches.match >= 0)
    is_told = matches.is_complete & arrivals.waits_known
    rows = rows[is_told[matches.match[rows]]]
    np.add.at(counts, calls.row[rows], calls.row[rows] == matches.row[matches.match[rows]])
    for row, time in zip(matches.row[is_told].tolist(), arrivals.shortest_ns[is_told].tolist(), strict=True):
        shortest[calls.rows[row]].append(time)
    number = {key: place for place, key in enumerate(calls.rows)}
    for record in merged.collectives:
        key = key_of(record)
        is_whole = key in number and counts[number[key]] == record.calls
        record.shortest_ns = shortest[key] if is_whole and len(shortest[key]) * record.ranks == record.calls else []
