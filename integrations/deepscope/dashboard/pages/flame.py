"""The flame graph: call paths down to kernels or up to callers, and their difference to another run's."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from deepscope.comparison.pairing import pair_lines
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, PageAnswer, title_of, whole_place, word
from deepscope.errors import OptionError
from deepscope.records import PartKey, Profile
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import base_name
from deepscope.report.call_paths import Depth, FlameMetric, flame_tree
from deepscope.report.event_names import place_name
from deepscope.report.line_tree import NodeKind

NODES = 8000

FlameDirection = Literal["down", "up"]
"""From the outermost line down to the work, or from the work up to its callers."""


class FlameQuestion(Choice, kw_only=True, frozen=True):
    """What to draw."""

    metric: FlameMetric = "device"
    depth: Depth = "kernel"
    direction: FlameDirection = "down"
    baseline: str = ""
    """Another run's id, to which the difference is shown."""


class FlameFrame(PageAnswer):
    """What boxes show."""

    kind: NodeKind
    name: str
    file: str
    """As recorded; "" where none is known."""
    line: int
    place: str


class Flame(PageAnswer):
    """The nodes in columns; a parent stands before its children."""

    metrics: list[FlameMetric]
    """Of which there is any time."""
    is_device: bool
    frames: list[FlameFrame]
    shown: list[int]
    """Of each node its frame."""
    parents: list[int]
    """Of each node; -1 for a root."""
    own: list[int]
    """Nanoseconds of each node that lie in none of its children, over all steps."""
    before: list[int]
    """The same of the baseline, for as many steps and ranks; empty without one."""
    whole_ns: int
    before_ns: int
    gone_ns: int
    """The baseline's time on call paths that this run does not have."""
    baseline: str
    """What the baseline is called."""
    left_out: int
    """Smaller nodes, whose time their parents have."""
    left_out_ns: int
    """Time of those that had no parent; with `own` it sums to `whole_ns`."""
    sums: str
    """Of how many steps and ranks times are sums; "" where it is one step of one rank."""
    note: str


def flame(library: Library, question: FlameQuestion) -> Flame:
    """The flame graph of what was chosen.

    Raises:
        OptionError: the baseline has device work and this run has none, or the other way round.
    """
    profile = library.profile(question)
    other = _baseline(library, question, profile)
    metrics = _metrics(profile)
    metric = question.metric if question.metric in metrics or not metrics else metrics[0]
    naming = _Naming(profile, other)
    profiles = [(profile, naming.name)] if other is None else [(profile, naming.name), (other, naming.of_other)]
    tree = flame_tree(profiles, metric=metric, depth=question.depth, upwards=question.direction == "up", limit=NODES)
    before: list[int] = []
    before_ns = gone_ns = 0
    if other is not None:  # for as many steps and ranks
        mine, its = (max(one.totals.steps, 1) * max(one.totals.ranks, 1) for one in (profile, other))
        factor = mine / its
        before = [round(own[1] * factor) for own in tree.own]
        before_ns = sum(before) + round(tree.left_out_ns[1] * factor)
        gone_ns = sum(time_ns for time_ns, here in zip(before, tree.totals(0), strict=True) if not here)
    numbers: dict[Hashable, int] = {}
    shown = [numbers.setdefault(name, len(numbers)) for name in tree.frames]
    return Flame(
        metrics=metrics,
        is_device=profile.metric == "device",
        frames=[naming.shown(name) for name in numbers],
        shown=shown,
        parents=tree.parents,
        own=[own[0] for own in tree.own],
        before=before,
        whole_ns=sum(own[0] for own in tree.own) + tree.left_out_ns[0],
        before_ns=before_ns,
        gone_ns=gone_ns,
        baseline="" if other is None else _title(other),
        left_out=tree.left_out,
        left_out_ns=tree.left_out_ns[0],
        sums=_sums(profile),
        note="" if profile.call_tree else "This trace tells no call paths; these are its lines.",
    )


def _baseline(library: Library, question: FlameQuestion, profile: Profile) -> Profile | None:
    if not question.baseline:
        return None
    ranks = library.run(Choice(run=question.baseline)).ranks
    rank = question.rank if question.rank in ranks else None
    other = library.profile(Choice(run=question.baseline, stage=question.stage, rank=rank))
    if other.metric != profile.metric:
        raise OptionError("baseline", question.baseline, "one run has device work and the other has none")
    return other


def _metrics(profile: Profile) -> list[FlameMetric]:
    rows = [*profile.lines, profile.no_line]
    found: dict[FlameMetric, bool] = {
        "device": any(row.self_device_ns for row in rows),
        "backward": any(row.backward_device_ns for row in rows),
        "cpu": any(row.self_cpu_ns for row in rows),
    }
    return [name for name, is_there in found.items() if is_there]


def _title(profile: Profile) -> str:
    """What a run is called, with the minute of its recording."""
    return f"{title_of(profile)} {word(profile.trace.recorded_at)[:16].replace('T', ' ')}".strip()


def _sums(profile: Profile) -> str:
    steps, ranks = profile.totals.steps, profile.totals.ranks
    parts = [f"{number} {name}" for number, name in ((steps, "steps"), (ranks, "ranks")) if number > 1]
    return f"Times are sums over {' of each of '.join(parts)}." if parts else ""


class _Naming:
    """Which frame of one profile is which of the other: lines as they are paired, what is below them by name."""

    def __init__(self, profile: Profile, other: Profile | None) -> None:
        self._profile = profile
        self._other = other
        self._first: dict[Hashable, int] = {}
        self._pairs: dict[int, int] = {}
        if other is not None:
            self._pairs = pair_lines(other, profile)
            for number, place in enumerate(profile.places, len(profile.lines)):
                self._first.setdefault(_alike(place), number)

    def name(self, frame: int) -> Hashable:
        """A frame of the profile: its number; of places that the other one cannot tell apart the first one's."""
        first = len(self._profile.lines)
        if frame < first or self._other is None:
            return frame
        return self._first[_alike(self._profile.places[frame - first])]

    def of_other(self, frame: int) -> Hashable:
        """A frame of the other profile: the number of the one that it is, else its own, apart."""
        assert self._other is not None
        first = len(self._other.lines)
        if frame < 0:
            return frame
        if frame < first:
            return self._pairs.get(frame, ("gone", frame))
        return self._first.get(_alike(self._other.places[frame - first]), ("gone", frame))

    def shown(self, name: Hashable) -> FlameFrame:
        """What a frame shows."""
        if isinstance(name, tuple):
            assert self._other is not None
            return _frame(self._other, name[1], is_gone=True)
        assert isinstance(name, int)
        return _frame(self._profile, name, is_gone=False)


def _alike(place: PartKey) -> Hashable:
    if place.kind == "library":
        return place.kind, place.name, base_name(place.file), place.line
    return place.kind, place.name


def _frame(profile: Profile, number: int, *, is_gone: bool) -> FlameFrame:
    """A frame; one that is in the other run alone has no place here."""
    root = profile.trace.project_root
    if number < 0:
        return FlameFrame(kind="line", name=NO_LINE, file="", line=0, place="")
    if number < len(profile.lines):
        line = profile.lines[number]
        where = whole_place(line.file, line.line, root)
        file = "" if is_gone else line.file
        return FlameFrame(
            kind="line", name=f"{word(line.function)} · {base_name(where)}", file=file, line=line.line, place=where
        )
    place = profile.places[number - len(profile.lines)]
    where = whole_place(place.file, place.line, root) if place.file and place.line else ""
    name = word(place_name(place.kind, place.name))
    return FlameFrame(
        kind=place.kind,
        name=f"{name} · {base_name(where)}" if place.kind == "library" and where else name,
        file="" if is_gone else place.file,
        line=place.line,
        place=where,
    )
