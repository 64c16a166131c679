"""What ranks tell together, put into the profile that they were merged into."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.ranks.arrivals import arrivals_of
from deepscope.ranks.calls import gather
from deepscope.ranks.collectives import fill_waits
from deepscope.ranks.finding import straggler_findings
from deepscope.ranks.matching import match
from deepscope.ranks.overview import rank_rows
from deepscope.ranks.side_by_side import numbered
from deepscope.ranks.stragglers import find_stragglers
from deepscope.ranks.summary import summary_of
from deepscope.ranks.transfers import set_transfers
from deepscope.records import Profile
from deepscope.records.profile import add_findings


def add_what_ranks_tell(merged: Profile, profiles: Sequence[Profile]) -> None:
    """Adds what no rank tells alone: how long its collectives take once all are there, and which rank is late.

    Args:
        merged: of the profiles.
        profiles: of a rank each.
    """
    if len(profiles) < 2:
        return
    named, _ = numbered([summary_of(profile) for profile in profiles])
    matches = match(gather(named))
    arrivals = arrivals_of(matches)
    set_transfers(merged, matches, arrivals)
    if all(one.own is None for one in named):
        return
    rows = rank_rows(named)
    fill_waits(rows, named, matches, arrivals)
    add_findings(merged, straggler_findings(find_stragglers(named, rows), named))
