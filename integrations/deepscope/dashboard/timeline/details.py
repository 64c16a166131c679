"""All that is known of one slice."""

from __future__ import annotations

from deepscope.dashboard.timeline.answers import SliceDetails
from deepscope.dashboard.timeline.columns import KINDS, Columns
from deepscope.dashboard.timeline.facts import facts_at
from deepscope.dashboard.timeline.links import links_at
from deepscope.dashboard.timeline.names import whole_name
from deepscope.dashboard.timeline.places import row_of
from deepscope.errors import OptionError
from deepscope.printable import printable

_DEEPEST = 2_000
"""So many lines around a slice are told."""


def details_of(columns: Columns, one: int) -> SliceDetails:
    """The details of a slice.

    Raises:
        OptionError: there is no such slice.
    """
    slices = columns.slices
    if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < len(slices):
        raise OptionError("slice", one, f"no such slice; there are {len(slices):,}, from 0 on")
    label, (track, row) = int(slices.label[one]), row_of(columns, one)
    module = int(slices.module[one])
    return SliceDetails(
        slice=one,
        track=track,
        row=row,
        name=whole_name(columns.labels, label),
        kind=KINDS[columns.labels.kind[label]],
        start_ns=int(slices.start[one]),
        end_ns=int(slices.end[one]),
        self_ns=int(slices.self_ns[one]),
        place=int(slices.place[one]),
        stack=_stack(columns, int(slices.path[one])),
        module=printable(columns.modules[module]) if module >= 0 else "",
        facts=facts_at(columns, one),
        links=links_at(columns, one),
    )


def _stack(columns: Columns, path: int) -> list[int]:
    found: list[int] = []
    while path > 0 and len(found) < _DEEPEST:
        found.append(int(columns.path_place[path]))
        path = int(columns.path_parent[path])
    return found
