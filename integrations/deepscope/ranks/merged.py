"""What ranks tell together, put into the profile that they were merged into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from deepscope.ranks.arrivals import Arrivals, arrivals_of
from deepscope.ranks.calls import RowKey, gather, key_of
from deepscope.ranks.collectives import fill_waits
from deepscope.ranks.ended import end_sentences, find_ends
from deepscope.ranks.finding import straggler_findings
from deepscope.ranks.matching import MatchedCalls, match
from deepscope.ranks.overview import rank_rows
from deepscope.ranks.side_by_side import numbered
from deepscope.ranks.stragglers import find_stragglers
from deepscope.ranks.summary import summary_of
from deepscope.records import Profile
from deepscope.records.profile import add_findings


def add_what_ranks_tell(merged: Profile, profiles: Sequence[Profile]) -> None:
    """Adds what no rank tells alone: which rank ended early or is late, how long collectives take once all are there.

    Args:
        merged: of the profiles.
        profiles: of a rank each.
    """
    if len(profiles) < 2:
        return
    named, _ = numbered([summary_of(profile) for profile in profiles])
    merged.trace.warnings = [*merged.trace.warnings, *end_sentences(find_ends(named), merged.trace.project_root)]
    matches = match(gather(named))
    arrivals = arrivals_of(matches)
    set_transfers(merged, matches, arrivals)
    if all(one.own is None for one in named):
        return
    rows = rank_rows(named)
    fill_waits(rows, named, matches, arrivals)
    add_findings(merged, straggler_findings(find_stragglers(named, rows), named))


def set_transfers(merged: Profile, matches: MatchedCalls, arrivals: Arrivals) -> None:
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
