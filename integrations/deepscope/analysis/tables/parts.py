"""The parts that each call path's work is made of."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.parts import OTHER, Parts, find_parts, folded
from deepscope.analysis.ownership.below import Places, find_below
from deepscope.analysis.ownership.paths import PathTable
from deepscope.records import Part, Place
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64


def part_table(parts: Parts, places: list[Place], paths: PathTable, number: Int64) -> tuple[list[Part], list[Place]]:
    """The parts below the call tree's nodes, parents first, and their places; the small ones are folded.

    Args:
        parts: from `all_parts`, with their `places`.
        places: what they are.
        paths: of the trace.
        number: the call tree's node of each call path, from `call_tree`; shape (paths,).
    """
    parts = folded(parts, paths.location)
    used = distinct_values(parts.place[parts.place != OTHER])
    place = np.full(len(places) + 1, len(used), np.int64)  # the last is `OTHER`
    place[used] = np.arange(len(used))
    columns = (number[parts.path], parts.parent, place[parts.place], parts.self_ns, parts.backward_ns, parts.calls)
    records = [Part(*row) for row in np.stack(columns, axis=1).tolist()]
    names = [places[i] for i in used.tolist()]
    return records, [*names, Place("other", "")] if (parts.place == OTHER).any() else names


def all_parts(analysis: Analysis) -> tuple[Parts, list[Place]]:
    """The parts of an analysis, however small, and their places."""
    places = Places()
    attribution = analysis.attribution
    work, trace = attribution.work, attribution.trace
    below = find_below(attribution, analysis.modules, analysis.counted, places)
    leaf = None
    if work.metric == "device":
        names = trace.events.name[work.event]
        known = {name: Place("kernel", trace.strings[name]) for name in distinct_values(names).tolist()}
        leaf = places.table(known, len(trace.strings))[names]
    return find_parts(work, analysis.counted, below, leaf, places.alike()), places.all
