"""How long the slices of one name are."""

from __future__ import annotations

import numpy as np

from deepscope.dashboard.timeline.answers import Durations
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, Columns
from deepscope.dashboard.timeline.names import cut, whole_name
from deepscope.dashboard.timeline.places import found_slices
from deepscope.dashboard.timeline.search import NameIndex
from deepscope.errors import OptionError

BINS = 40
_LONGEST = 10


def durations_of(columns: Columns, names: NameIndex, name: str, kind: str) -> Durations:
    """The durations of the slices of a kind that bear a name, as it is shown or as it was recorded.

    Percentiles are those of the nearest rank. Slices of no duration stand in the first bin.

    Raises:
        OptionError: there is no such kind, or no slice of it bears the name.
    """
    if kind not in KIND_NUMBER:
        raise OptionError("kind", kind, f"no such kind; there are: {', '.join(KINDS)}")
    labels, slices = columns.labels, columns.slices
    wanted = (labels.kind == KIND_NUMBER[kind]) & names.bearing(name)
    found = np.flatnonzero(wanted[slices.label]) if wanted.any() else np.zeros(0, np.int64)
    if not len(found):
        raise OptionError("name", cut(name), f"no {kind} is called so")
    length = slices.end[found] - slices.start[found]
    ordered = np.sort(length)
    longest = np.lexsort((found, -length))[:_LONGEST]
    edges = _edges(int(ordered[0]), int(ordered[-1]))
    counts, _ = np.histogram(np.maximum(length, 1), edges)
    return Durations(
        name=whole_name(labels, int(np.argmax(wanted))),
        kind=KINDS[KIND_NUMBER[kind]],
        count=len(found),
        least_ns=int(ordered[0]),
        median_ns=int(ordered[(len(ordered) - 1) // 2]),
        p95_ns=int(ordered[-(-95 * len(ordered) // 100) - 1]),
        largest_ns=int(ordered[-1]),
        total_ns=int(length.sum()),
        edges_ns=edges.tolist(),
        counts=counts.tolist(),
        longest=found_slices(columns, found[longest]),
    )


def _edges(least: int, largest: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Edges of bins that grow by a constant ratio, from the least duration to beyond the largest."""
    first, last = float(max(least, 1)), float(max(largest, 1))
    if first == last:
        return np.array([first, first * 1.05])
    edges = np.geomspace(first, last, BINS + 1)
    edges[0], edges[-1] = first, np.nextafter(last, np.inf)
    return edges
