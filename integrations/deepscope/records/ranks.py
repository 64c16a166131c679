"""Several ranks' profiles merged into one: every number is the sum over the ranks, unless its field says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import Any, cast, get_type_hints

import msgspec

from deepscope.errors import IncomparableError
from deepscope.records.lines import LINE_KEY, CallNode, Line, Part, PartKey
from deepscope.records.merging import RankRecords, decoder_of, merge
from deepscope.records.profile import Profile
from deepscope.records.steps import ROW_KEYS, StepTable, StepTimes

_line_key = attrgetter(*LINE_KEY)


class _EncodedProfile:
    """A profile as bytes: a field is decoded when it is asked for and not kept, so that many fit into memory."""

    __slots__ = ("_fields",)

    def __init__(self, body: bytes) -> None:
        """Raises `msgspec.MsgspecError` where the bytes are no record."""
        self._fields: dict[str, msgspec.Raw] = msgspec.msgpack.decode(body, type=dict[str, msgspec.Raw])

    def __getattr__(self, field: str) -> Any:
        body = self._fields.get(field)
        if body is None:
            raise AttributeError(field)
        return _decoder(field).decode(body)


def encoded_profile(body: bytes) -> Profile:
    """A profile of which only the bytes are kept, for merging; raises `msgspec.MsgspecError` where it is none."""
    return cast(Profile, _EncodedProfile(body))


@cache
def _decoder(field: str) -> msgspec.msgpack.Decoder[Any]:
    return decoder_of(get_type_hints(Profile, include_extras=True)[field])


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """Merges the profiles of several ranks of one run, each of one rank; the order gives the order of `trace.ranks`.

    Times, counts and bytes are summed (`totals.wall_ns` and a step's duration too: divide by `totals.ranks` for the
    mean). Lines are matched by file, line and function, steps by number.

    Raises:
        IncomparableError: some ranks have device events and some have none, so that their numbers do not add up.
        ValueError: there is no profile.
    """
    if not profiles:
        raise ValueError("no profile to merge")
    if len(profiles) == 1:
        return profiles[0]
    infos = [profile.trace for profile in profiles]
    metrics = [profile.metric for profile in profiles]
    if len(set(metrics)) > 1:
        without = [info.path for info, metric in zip(infos, metrics, strict=True) if metric == "cpu_self"]
        raise IncomparableError(f"{without[0]}: has no device events while other ranks have; choose one rank")
    ranks = [info.ranks[0] if info.ranks else place for place, info in enumerate(infos)]
    merged = merge(
        RankRecords(profiles, ranks, {rank: place for place, rank in enumerate(dict.fromkeys(ranks))}), Profile
    )
    merged.totals.steps = len(merged.steps) or merged.totals.steps
    merged.call_tree, moved = _one_tree(profiles, merged.lines)
    merged.parts, merged.places = _parts(profiles, moved)
    merged.step_times = _merged_step_times(profiles, merged)
    return merged


def _one_tree(profiles: Sequence[Profile], lines: Sequence[Line]) -> tuple[list[CallNode], list[list[int]]]:
    """Nodes with the same lines above them are one node; with it where each profile's nodes are in it."""
    line_places = {_line_key(line): place for place, line in enumerate(lines)}
    nodes: list[CallNode] = []
    places: dict[tuple[int, int], int] = {}
    all_moved: list[list[int]] = []
    for profile in profiles:
        moved: list[int] = []
        all_moved.append(moved)
        place_of_line = [line_places[_line_key(line)] for line in profile.lines]
        for node in profile.call_tree:  # a parent stands before its children
            parent = moved[node.parent] if node.parent >= 0 else -1
            line = place_of_line[node.line] if node.line >= 0 else -1
            place = places.get((parent, line))
            if place is None:
                place = places[parent, line] = len(nodes)
                nodes.append(CallNode(parent, line, 0, 0, 0))
            merged = nodes[place]
            merged.self_device_ns += node.self_device_ns
            merged.self_cpu_ns += node.self_cpu_ns
            merged.backward_device_ns += node.backward_device_ns
            moved.append(place)
    return nodes, all_moved


def _parts(profiles: Sequence[Profile], calls: Sequence[Sequence[int]]) -> tuple[list[Part], list[PartKey]]:
    """Parts with the same parts above them are one part; `calls` says where each profile's call nodes are."""
    parts: list[Part] = []
    numbers: dict[tuple[int, int, int], int] = {}
    places: dict[PartKey, int] = {}
    for profile, call_of in zip(profiles, calls, strict=True):
        place_of = [places.setdefault(place, len(places)) for place in profile.places]
        moved: list[int] = []
        for part in profile.parts:  # a parent stands before its parts
            key = call_of[part.call], moved[part.parent] if part.parent >= 0 else -1, place_of[part.place]
            number = numbers.setdefault(key, len(parts))
            if number == len(parts):
                parts.append(Part(*key))
            merged = parts[number]
            merged.self_device_ns += part.self_device_ns
            merged.backward_device_ns += part.backward_device_ns
            merged.calls += part.calls
            moved.append(number)
    return parts, list(places)


def _merged_step_times(profiles: Sequence[Profile], merged: Profile) -> list[StepTimes]:
    """Those of several ranks summed by block, the blocks as long as `merged.steps_per_block` says."""
    places = {
        table: {attrgetter(*key)(row): place for place, row in enumerate(getattr(merged, table))}
        for table, key in ROW_KEYS.items()
    }
    found: dict[tuple[StepTable, int], StepTimes] = {}
    for profile in profiles:
        shorter = max(1, merged.steps_per_block // profile.steps_per_block)
        rows_of: dict[StepTable, list[Any]] = {}
        for one in profile.step_times:
            if one.table not in rows_of:  # of an encoded profile it is decoded for this
                rows_of[one.table] = getattr(profile, one.table)
            key_of = attrgetter(*ROW_KEYS[one.table])
            place = -1 if one.row < 0 else places[one.table][key_of(rows_of[one.table][one.row])]
            row = found.setdefault((one.table, place), StepTimes(one.table, place, {}, {}))
            for into, times in ((row.device_ns, one.device_ns), (row.beside_ns, one.beside_ns)):
                for block, duration_ns in times.items():
                    into[block // shorter] = into.get(block // shorter, 0) + duration_ns
    return list(found.values())
