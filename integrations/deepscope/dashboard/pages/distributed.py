"""The distributed page: ranks side by side, their collectives, and which rank is late.

All of it is from each rank's own profile. Clocks of ranks are not compared: who waits for whom is told by how long the
same call of a collective takes on each rank (docs/numbers.md, Collectives).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from statistics import median

from deepscope.dashboard.answer import Answer, Choice, Figure, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.arrivals import Arrivals, key_of_calls, rank_of
from deepscope.dashboard.pages.tables import ColumnOf, table_of, where
from deepscope.dashboard.pages.words import whole_place, word
from deepscope.records import Collective, Line, Profile
from deepscope.records.profile import LINE_KEY
from deepscope.report.places import Sources

__all__ = ["Distributed", "RankRow", "Straggler", "distributed"]

SLOWEST = 5
STRAGGLES = 0.05
"""A rank holds the others up if its own time is above the median by more than this share of a step."""
LINES = 500
PART_OF_EXCESS = 0.2
"""A line or a part is named if it has at least so much of what a rank is slower by."""

_line_key = attrgetter(*LINE_KEY)


class RankRow(Answer):
    """One rank. Times are a step's; without steps the whole trace's."""

    rank: int
    host: str
    device: str
    steps: int
    step_ns: int
    own_ns: int
    """The step without the part in which only collectives run."""
    parts: list[int]
    """The step by `Distributed.part_names`, each instant once."""
    compute_ns: int
    """Work that is no collective; without a device operators' own time."""
    communication_ns: int
    """In collectives, summed."""
    exposed_ns: int
    """The part of it that no computation overlaps."""
    idle_ns: int
    """When no stream of a device works, summed over the devices."""
    data_ns: int
    """Of the training thread in the phase of loading data."""
    sync_ns: int
    """CPU time in calls that wait for the device."""
    waited_ns: int | None
    """In collectives for other ranks; None where the traces do not tell."""
    last: int | None
    """How many calls of collectives this rank came to last; None as above."""
    peak_bytes: int


class Straggler(Answer):
    """A rank that the others wait for."""

    rank: int
    excess_ns: int
    """Where `Distributed.knows_waits`, by how much less of a step it waits in collectives than the others' median does;
    else by how much its own time of a step is above the median of the others."""
    part: str
    """Of the step, that in which it is slower by most; "" where no part has a fifth of it."""
    part_ns: int
    """By which that part is above the median."""
    file: str
    """Of the line whose cost a step, without collectives, is above the median by most; "" where none has a fifth."""
    line: int
    place: str
    function: str
    source: str
    line_ns: int


class Distributed(Answer):
    """Ranks side by side."""

    sentence: str
    figures: list[Figure]
    part_names: list[str]
    ranks: list[RankRow]
    """By rank."""
    slowest: list[int]
    """The ranks with the longest own time, the longest first; empty for a single rank."""
    stragglers: list[Straggler]
    """The worst first."""
    missing: int
    """Ranks of the run of which there is no trace."""
    knows_waits: bool
    """Whether the traces tell which ranks a collective has, and each of them is here: for at least one collective."""
    collectives: Table
    lines: Table
    """Lines by how much their device time differs between ranks."""


def distributed(library: Library, question: Choice) -> Distributed:
    """Ranks side by side, and which one is late."""
    whole = Choice(
        run=question.run, stage=question.stage, step=question.step, phase=question.phase, module=question.module
    )
    merged = library.profile(whole)
    profiles = library.ranks(whole)
    names = [row.name for row in merged.overview if row.section == "step"]
    arrivals = Arrivals(profiles)
    rows = [
        _rank(profile, number, names, arrivals)
        for profile, number in sorted(
            ((profile, rank_of(profile, place)) for place, profile in enumerate(profiles)), key=lambda one: one[1]
        )
    ]
    slowest = sorted(rows, key=lambda row: (-row.own_ns, row.rank))[:SLOWEST] if len(rows) > 1 else []
    stragglers = _stragglers(profiles, rows, names)
    return Distributed(
        sentence=_sentence(rows, stragglers, names),
        figures=_figures(rows, arrivals),
        part_names=[word(name) for name in names],
        ranks=rows,
        slowest=[row.rank for row in slowest],
        stragglers=stragglers,
        missing=max(merged.trace.world_size - len(profiles), 0),
        knows_waits=bool(arrivals.of_key),
        collectives=_collectives(merged, arrivals),
        lines=_spread_lines(merged),
    )


def _rank(profile: Profile, number: int, names: Sequence[str], arrivals: Arrivals) -> RankRow:
    totals, info = profile.totals, profile.trace
    steps = max(totals.steps, 1)
    parts = {row.name: row.time_ns // max(row.steps, 1) for row in profile.overview if row.section == "step"}
    on_device = sum(row.time_ns for row in profile.collectives if row.on_device)
    knows = number in arrivals.waited
    return RankRow(
        rank=number,
        host=word(info.hostname),
        device=word(info.device),
        steps=totals.steps,
        step_ns=totals.wall_ns // steps,
        own_ns=sum(time for name, time in parts.items() if name != "communication"),
        parts=[parts.get(name, 0) for name in names],
        compute_ns=(totals.device_ns - (on_device if profile.metric == "device" else 0)) // steps,
        communication_ns=sum(row.time_ns for row in profile.collectives) // steps,
        exposed_ns=sum(row.exposed_ns for row in profile.collectives) // steps,
        idle_ns=totals.idle_ns // steps,
        data_ns=sum(phase.wall_ns for phase in profile.phases if phase.name == "data") // steps,
        sync_ns=totals.wait_ns // steps,
        waited_ns=arrivals.waited[number] // steps if knows else None,
        last=arrivals.last[number] if knows else None,
        peak_bytes=totals.peak_bytes,
    )


def _stragglers(profiles: Sequence[Profile], rows: Sequence[RankRow], names: Sequence[str]) -> list[Straggler]:
    if len(rows) < 2:
        return []
    step = median(row.step_ns for row in rows)
    excesses = _excesses(rows)
    late = [row for row in rows if excesses[row.rank] > STRAGGLES * step]
    by_rank = {rank_of(profile, place): profile for place, profile in enumerate(profiles)}
    costs = {rank: _line_costs(profile) for rank, profile in by_rank.items()} if late else {}
    found = []
    for row in sorted(late, key=lambda one: -one.own_ns):
        excess = excesses[row.rank]
        part, part_ns = _slower_part(row, rows, names)
        line, line_ns = _slower_line(row.rank, costs)
        is_part, is_line = part_ns >= PART_OF_EXCESS * excess, line_ns >= PART_OF_EXCESS * excess
        profile = by_rank[row.rank]
        known = line if is_line else None
        found.append(
            Straggler(
                rank=row.rank,
                excess_ns=excess,
                part=word(part) if is_part else "",
                part_ns=part_ns if is_part else 0,
                file=known.file if known is not None else "",
                line=known.line if known is not None else 0,
                place=whole_place(known.file, known.line, profile.trace.project_root) if known is not None else "",
                function=word(known.function) if known is not None else "",
                source=word(Sources(profile).text(known)) if known is not None else "",
                line_ns=line_ns if known is not None else 0,
            )
        )
    return found


def _excesses(rows: Sequence[RankRow]) -> dict[int, int]:
    """By how much each rank is later than the others: by who waits for whom where that is known of all."""
    if all(row.waited_ns is not None for row in rows):
        early = {row.rank: -(row.waited_ns or 0) for row in rows}
    else:
        early = {row.rank: row.own_ns for row in rows}
    return {rank: _above_others(rank, early) for rank in early}


def _above_others(rank: int, of_ranks: dict[int, int]) -> int:
    """By how much a number is above the median of the other ranks."""
    return of_ranks[rank] - int(median(value for other, value in of_ranks.items() if other != rank))


def _slower_part(row: RankRow, rows: Sequence[RankRow], names: Sequence[str]) -> tuple[str, int]:
    """The part of the step, collectives excepted, that is above the median of the others by most."""
    excess = [
        (_above_others(row.rank, {one.rank: one.parts[place] for one in rows}), name)
        for place, name in enumerate(names)
        if name != "communication"
    ]
    most = max(excess, default=(0, ""))
    return most[1], most[0]


def _line_costs(profile: Profile) -> dict[tuple[object, ...], tuple[int, Line]]:
    steps = max(profile.totals.steps, 1)
    return {_line_key(line): ((line.cost_ns - line.collective_ns) // steps, line) for line in profile.lines}


def _slower_line(rank: int, costs: dict[int, dict[tuple[object, ...], tuple[int, Line]]]) -> tuple[Line | None, int]:
    """The line that costs more than on the others' median by most; a rank without it counts as 0."""
    most: tuple[int, Line | None] = (0, None)
    for key, (cost, line) in costs[rank].items():
        if cost > most[0]:
            above = _above_others(rank, {one: of[key][0] if key in of else 0 for one, of in costs.items()})
            if above > most[0]:
                most = above, line
    return most[1], most[0]


def _sentence(rows: Sequence[RankRow], stragglers: Sequence[Straggler], names: Sequence[str]) -> str:
    from deepscope.report.wording import share_text, time_text

    if len(rows) < 2:
        return "One rank was recorded here: it tells what its collectives cost, and not which rank was late."
    if stragglers:
        worst = stragglers[0]
        more = f", and {len(stragglers) - 1} more" if len(stragglers) > 1 else ""
        if rows[0].waited_ns is not None:
            why = f"in collectives they wait {time_text(worst.excess_ns)} a step more than it does"
        else:
            why = f"without communication its step takes {time_text(worst.excess_ns)} longer than theirs"
        return f"Rank {worst.rank} holds the others up{more}: {why}."
    own = [row.own_ns for row in rows]
    spread = share_text(max(own) - min(own), max(own)) or "0%"
    at = names.index("communication") if "communication" in names else -1
    wholes = sum(sum(row.parts) for row in rows)
    exposed = share_text(sum(row.parts[at] for row in rows), wholes) if at >= 0 else ""
    waits = f" Only collectives run in {exposed} of the steps' time." if exposed else ""
    return f"No rank stands out: without communication the ranks' steps differ by {spread}.{waits}"


def _figures(rows: Sequence[RankRow], arrivals: Arrivals) -> list[Figure]:
    count = max(len(rows), 1)
    communication = sum(row.communication_ns for row in rows)
    exposed = sum(row.exposed_ns for row in rows)
    waited = sum(row.waited_ns or 0 for row in rows)
    own = [row.own_ns for row in rows]
    found = [
        Figure(label="ranks", value=len(rows), kind="count", help="Of which there is a trace."),
        Figure(
            label="step, slowest rank", value=max((row.step_ns for row in rows), default=0), kind="time",
            help="The longest mean time of a step.",
        ),
        Figure(
            label="own time, spread", value=max(own) - min(own) if own else 0, kind="time",
            help="Between the ranks with the longest and the shortest step, communication left out.",
        ),
        Figure(
            label="communication", value=communication // count, kind="time",
            help="Time in collectives, a step and rank.",
        ),
        Figure(
            label="exposed", value=exposed / communication if communication else 0, kind="share",
            help="Of the time in collectives, what no computation overlaps.",
        ),
        Figure(
            label="waiting for others", value=waited // count, kind="time",
            help="In collectives, until the last rank has come; a step and rank.",
        ) if arrivals.of_key else None,
    ]  # fmt: skip
    return [one for one in found if one is not None and one.value]


def _collectives(merged: Profile, arrivals: Arrivals) -> Table:
    def spread(row: Collective, of: str) -> int | None:
        found = arrivals.of_key.get(key_of_calls(row))
        if found is None:
            return None
        return max(found.spreads) if of == "most" else sum(found.spreads) // len(found.spreads)

    def late(row: Collective) -> str | None:
        found = arrivals.of_key.get(key_of_calls(row))
        if found is None:
            return None
        rank, count = max(found.last.items(), key=lambda one: (one[1], -one[0]))
        return f"rank {rank} ({count} of {len(found.times)})" if count else None

    columns = [
        ColumnOf("kind", "collective", "text", lambda row: row.kind or "unknown"),
        ColumnOf("group", "group", "text", _group, rank=4),
        ColumnOf("dtype", "type", "text", lambda row: row.dtype, rank=6),
        ColumnOf("ranks", "ranks", "count", lambda row: row.ranks, "Ranks in this row.", rank=5),
        ColumnOf("calls", "calls", "count", lambda row: row.calls, rank=3),
        ColumnOf("time_ns", "time", "time", lambda row: row.time_ns, "Of all calls and ranks."),
        ColumnOf(
            "mean_ns", "mean", "time", lambda row: row.time_ns // row.calls if row.calls else None, "Of a call.", rank=2
        ),
        ColumnOf(
            "message_bytes",
            "message",
            "bytes",
            lambda row: row.bytes // row.calls if row.calls and row.bytes else None,
            "Size of a message: the larger of what goes into a rank and what comes out.",
            rank=4,
        ),
        ColumnOf(
            "exposed",
            "exposed",
            "share",
            lambda row: row.exposed_ns / row.time_ns if row.time_ns else None,
            "The part of the time that no computation overlaps.",
            rank=1,
        ),
        ColumnOf(
            "algorithm_bytes_per_s",
            "algorithm bandwidth",
            "bandwidth",
            lambda row: row.algorithm_bytes_per_s,
            "Bytes of the messages by the time.",
            rank=7,
        ),
        ColumnOf(
            "bus_bytes_per_s",
            "bus bandwidth",
            "bandwidth",
            lambda row: row.bus_bytes_per_s,
            "What each link must have carried, as nccl-tests counts.",
            rank=5,
        ),
        ColumnOf(
            "wait_ns",
            "waiting",
            "time",
            lambda row: row.wait_ns,
            "Of the time, that in which ranks wait for the last one to come.",
            rank=2,
        ),
        ColumnOf(
            "spread_ns",
            "arrival spread",
            "time",
            lambda row: spread(row, "mean"),
            "From the first rank's coming to the last one's, the mean over the calls: the longest less the shortest"
            " duration of a call on the ranks of the group.",
            rank=3,
        ),
        ColumnOf(
            "max_spread_ns", "largest spread", "time", lambda row: spread(row, "most"), "Of a single call.", rank=8
        ),
        ColumnOf("late", "last to come", "text", late, "The rank that came last to most calls.", rank=3),
    ]
    return table_of("collectives", "Collectives", columns, merged.collectives)


def _group(row: Collective) -> str:
    named = row.group_description or row.group
    ranks = f"ranks {row.group_ranks}" if row.group_ranks else f"{row.group_size} ranks" if row.group_size else ""
    return ", ".join(filter(None, (named, ranks)))


def _spread_lines(merged: Profile) -> Table:
    rows = [line for line in merged.lines if line.spread is not None and line.spread.max_ns > line.spread.min_ns]
    rows.sort(key=lambda line: line.spread.min_ns - line.spread.max_ns if line.spread is not None else 0)
    steps = max(merged.totals.steps, 1)
    columns = [
        where(merged),
        ColumnOf("function", "function", "text", lambda line: line.function, rank=4),
        ColumnOf(
            "range_ns",
            "difference",
            "time",
            lambda line: (line.spread.max_ns - line.spread.min_ns) // steps,
            "Between the ranks with the most and the least of it, in a step.",
        ),
        ColumnOf(
            "median_ns",
            "median",
            "time",
            lambda line: line.spread.median_ns // steps,
            "Of the ranks, in a step.",
            rank=5,
        ),
        ColumnOf("min_ns", "least", "time", lambda line: line.spread.min_ns // steps, "In a step.", rank=3),
        ColumnOf("min_rank", "least on rank", "text", lambda line: str(line.spread.min_rank), rank=3),
        ColumnOf("max_ns", "most", "time", lambda line: line.spread.max_ns // steps, "In a step.", rank=2),
        ColumnOf("max_rank", "most on rank", "text", lambda line: str(line.spread.max_rank), rank=1),
    ]
    return table_of("spread_lines", "Lines that differ between ranks", columns, rows[:LINES])
