"""The memory page: each device's curve, what was live at its peak and at any moment, and torch's own snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.dashboard.library import Library
from deepscope.dashboard.memory_moments import LiveMemory, MemoryMoments, Owner
from deepscope.dashboard.page_answer import Choice, Fact, Figure, PageAnswer, Table, in_page_words, table_of, word
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import CurvePoint, DeviceMemory, HeldByLine, HeldMemory, Profile
from deepscope.records.memory import SnapshotDevice, SnapshotMoment
from deepscope.report.line_table import FUNCTION
from deepscope.report.memory import held_columns, kind_words, memory_by_line
from deepscope.report.snapshot_report import device_entries, device_name, growth_columns, holder_columns, moment_words
from deepscope.report.table_column import ColumnOf, field, place_column

STEPS = 2000
"""Steps that are marked on the axis of time."""


class HeldPart(PageAnswer):
    """How much of what was live was of one kind."""

    kind: str
    """In words, in the order in which kinds are shown everywhere; all kinds are there."""
    size_bytes: int


class StepMark(PageAnswer):
    """A step on the axis of time."""

    number: int
    begin_ns: int
    end_ns: int


class MemoryCurve(PageAnswer):
    """What was allocated after each of some events. Times are nanoseconds from `DeviceCurve.begin`."""

    at_ns: list[int]
    allocated_bytes: list[int]
    reserved_bytes: list[int]
    """Empty where the trace does not say; -1 where it does not say for an event."""


class DeviceCurve(PageAnswer):
    """The memory of one device; of several ranks that call theirs by the same name, that with the largest peak."""

    device: str
    rank: int | None
    """Of several the one that this is of."""
    begin: str
    """The 0 of all times here, on the trace's clock: nanoseconds in digits, more than JavaScript's numbers hold."""
    end_ns: int
    curve: MemoryCurve
    capacity_bytes: int
    """0 where the trace does not say."""
    peak_at_ns: int
    peak_bytes: int
    held: list[HeldPart]
    """At the peak; they sum to `peak_bytes`."""
    at_peak: Table | None
    """The same by line; None where `MemoryPage.at_peak` is that, or where no profile has this device alone."""
    steps: list[StepMark]


class FailedAllocation(PageAnswer):
    """An allocation that failed, and what was live then."""

    message: str
    device: str
    size_bytes: int
    held: list[HeldPart]
    lines: Table


class MemoryPage(PageAnswer):
    """The memory of a run."""

    figures: list[Figure]
    devices: list[DeviceCurve]
    """The largest peak first; empty where nothing recorded memory."""
    owners_known: bool
    """Whether the recorder told what held memory; else all of it is unknown."""
    at_peak: Table
    """What was live at the peaks by line, the devices and ranks added up."""
    lines: Table
    """What each line allocated and released."""
    failure: FailedAllocation | None
    has_snapshot: bool
    """Whether torch's snapshot lies beside the trace (`memory_snapshot`)."""


class MomentQuestion(Choice, kw_only=True, frozen=True):
    """What was live at a moment. The rank, if any, is `DeviceCurve.rank`."""

    device: str = ""
    at: str = "0"
    """On the trace's clock: nanoseconds in digits."""


class Moment(PageAnswer):
    """What was live on a device after the last event until a moment."""

    at: str
    """When that event was, on the trace's clock: nanoseconds in digits."""
    allocated_bytes: int
    """As the curve has it."""
    reserved_bytes: int
    """-1 where the trace does not say."""
    size_bytes: int
    """What the kinds sum to, and the rows of each table: `allocated_bytes`, or more where more blocks are known."""
    held: list[HeldPart]
    lines: Table
    modules: Table


class WindowQuestion(Choice, kw_only=True, frozen=True):
    """The curve in a window. The rank, if any, is `DeviceCurve.rank`."""

    device: str = ""
    zero: str = "0"
    """`DeviceCurve.begin`."""
    begin_ns: int = 0
    """From there."""
    end_ns: int = 0


def memory(library: Library, question: Choice) -> MemoryPage:
    """The memory's curve, its peak, and what was live then."""
    profile = library.profile(question)
    failure = profile.memory.failure
    return MemoryPage(
        figures=_figures(profile),
        devices=[_device(one, library, question, profile) for one in profile.memory.devices],
        owners_known=profile.memory.owners_known,
        at_peak=_held_table(profile, "at_peak", "At the peak", _at_peak(profile)),
        lines=_line_table(profile),
        failure=None
        if failure is None
        else FailedAllocation(
            message=printable(f"{failure.error}: {failure.message}")[:2000],
            device=word(failure.device),
            size_bytes=failure.held.size_bytes,
            held=_parts(failure.held),
            lines=_held_table(profile, "at_failure", "When the allocation failed", failure.lines),
        ),
        has_snapshot=library.snapshot_file(question) is not None,
    )


def memory_at(library: Library, question: MomentQuestion) -> Moment:
    """What was live at a moment, by line, by module and by what held it."""
    at_ns = _digits("at", question.at)
    profile = library.profile(question)
    moments = library.moments(question)
    device = moments.device(question.device)
    held = moments.held_at(device, at_ns, "line")
    return Moment(
        at=str(held.at_ns),
        allocated_bytes=held.allocated_bytes,
        reserved_bytes=held.reserved_bytes,
        size_bytes=int(held.by_owner.sum()),
        held=[
            HeldPart(kind=kind_words(kind), size_bytes=int(size))
            for kind, size in zip(KINDS, held.by_owner.sum(axis=0).tolist(), strict=True)
        ],
        lines=_held_table(profile, "at_moment", "By line", _rows(moments, held, "line")),
        modules=_module_table(_rows(moments, moments.held_at(device, at_ns, "module"), "module")),
    )


def memory_curve(library: Library, question: WindowQuestion) -> MemoryCurve:
    """The curve in a window."""
    zero = _digits("zero", question.zero)
    device = library.moments(question).device(question.device)
    return _curve(device.curve(zero + question.begin_ns, zero + question.end_ns), zero)


def _digits(name: str, text: str) -> int:
    if not (text.isascii() and text.lstrip("-").isdigit() and len(text) < 25):
        raise OptionError(name, text[:50], "no number of nanoseconds")
    return int(text)


def _figures(profile: Profile) -> list[Figure]:
    devices, totals = profile.memory.devices, profile.totals
    if not devices:
        return []
    largest = devices[0]
    reserved = max((point.reserved_bytes for point in largest.curve), default=-1)
    allocated = sum(one.bytes_allocated for one in [*profile.lines, profile.no_line])
    found = [
        Figure("peak", largest.largest_peak_bytes, "bytes", "The most that was allocated at once."),
        Figure(
            "of the device",
            largest.largest_peak_bytes / largest.capacity_bytes if largest.capacity_bytes else 0,
            "share",
            "The peak by what the device has.",
        ),
        Figure("reserved", max(reserved, 0), "bytes", "The most that the allocator held of the device."),
        Figure(
            "peaks of all",
            totals.peak_bytes if totals.peak_bytes != largest.largest_peak_bytes else 0,
            "bytes",
            "The peaks of all devices and ranks, added up.",
        ),
        Figure(
            "allocated a step" if totals.steps else "allocated in all",
            allocated // max(totals.steps, 1) // max(totals.ranks, 1),
            "bytes",
            "All allocations added up, also of what was released again.",
        ),
    ]
    return [one for one in found if one.value]


def _device(device: DeviceMemory, library: Library, question: Choice, profile: Profile) -> DeviceCurve:
    source, own, rank = _source(device, library, question, profile)
    begin = own.curve[0].at_ns if own.curve else own.peak_at_ns
    end = own.curve[-1].at_ns if own.curve else own.peak_at_ns
    return DeviceCurve(
        device=word(device.device),
        rank=rank,
        begin=str(begin),
        end_ns=end - begin,
        curve=_curve(own.curve, begin),
        capacity_bytes=own.capacity_bytes,
        peak_at_ns=own.peak_at_ns - begin,
        peak_bytes=own.peak.size_bytes,
        held=_parts(own.peak),
        at_peak=_held_table(source, "at_peak", "At the peak", _at_peak(source))
        if source is not profile and len(source.memory.devices) == 1
        else None,
        steps=[
            StepMark(
                number=step.number, begin_ns=step.start_ns - begin, end_ns=step.start_ns + step.duration_ns - begin
            )
            for step in source.steps[:STEPS]
        ],
    )


def _source(
    device: DeviceMemory, library: Library, question: Choice, profile: Profile
) -> tuple[Profile, DeviceMemory, int | None]:
    """The profile, device and rank that a curve is of: of several the first rank with the largest peak."""
    if len(profile.trace.ranks) < 2 or question.rank is not None:
        return profile, device, question.rank
    for one in library.ranks(question).summaries:
        if one.rank >= 0 and one.device_peaks.get(device.device) == device.largest_peak_bytes:
            single = library.profile(replace(question, rank=one.rank))
            own = next(its for its in single.memory.devices if its.device == device.device)
            return single, own, one.rank
    return profile, device, None


def _curve(points: Sequence[CurvePoint], begin_ns: int) -> MemoryCurve:
    knows = any(point.reserved_bytes >= 0 for point in points)
    return MemoryCurve(
        at_ns=[point.at_ns - begin_ns for point in points],
        allocated_bytes=[point.allocated_bytes for point in points],
        reserved_bytes=[point.reserved_bytes for point in points] if knows else [],
    )


def _parts(held: HeldMemory) -> list[HeldPart]:
    return [HeldPart(kind=kind_words(kind), size_bytes=getattr(held, f"{kind}_bytes")) for kind in KINDS]


def _at_peak(profile: Profile) -> list[HeldByLine]:
    if profile.memory.failure is None:
        return memory_by_line(profile)
    memory = replace(profile.memory, failure=None)  # which `memory_by_line` would tell of
    return memory_by_line(replace(profile, memory=memory))


def _rows(moments: MemoryMoments, held: LiveMemory, by: Owner) -> list[HeldByLine]:
    """Owners with something live, the largest first; what no owner has stands without a file and a name."""
    whole = held.by_owner.sum(axis=1)
    rows = []
    for owner in sorted(whole.nonzero()[0].tolist(), key=lambda row: (-int(whole[row]), row)):
        file, line, name = "", 0, ""
        if by == "line" and owner < len(moments.lines):
            place = moments.lines[owner]
            file, line, name = place.file, place.line, place.function
        elif by == "module" and owner < len(moments.modules):
            name = moments.modules[owner]
        parts = zip(KINDS, held.by_owner[owner].tolist(), strict=True)
        rows.append(
            HeldByLine(
                file=file,
                line=line,
                function=name,
                size_bytes=int(whole[owner]),
                **{f"{kind}_bytes": size for kind, size in parts},
            )
        )
    return rows


_FUNCTION = FUNCTION._replace(rank=3)


def _held_table(profile: Profile, name: str, title: str, rows: Sequence[HeldByLine]) -> Table:
    return table_of(name, title, [place_column(profile), _FUNCTION, *held_columns()], rows)


def _module_table(rows: Sequence[HeldByLine]) -> Table:
    name = ColumnOf("module", "module", "text", lambda row: row.function or "(no module)")
    return table_of("modules_at_moment", "By module", [name, *held_columns()], rows)


def _line_table(profile: Profile) -> Table:
    rows = [
        row for row in (*profile.lines, profile.no_line) if row.bytes_allocated or row.bytes_freed or row.peak_bytes
    ]
    rows.sort(key=lambda row: -row.bytes_allocated)
    columns = [
        place_column(profile),
        _FUNCTION,
        field("bytes_allocated", "allocated", "bytes", "By the line, in all."),
        field("bytes_freed", "released", "bytes", "While the line ran, whoever allocated it.", 1),
        ColumnOf(
            "net_bytes",
            "left",
            "bytes",
            lambda row: row.bytes_allocated - row.bytes_freed,
            "What the line left behind.",
            4,
        ),
        field("peak_bytes", "live at the peak", "bytes", "Allocated by the line.", 2),
    ]
    return table_of("memory_lines", "What lines allocate", columns, rows)


class SnapshotPart(PageAnswer):
    """One device of a snapshot."""

    device: str
    facts: list[Fact]
    live: Table
    """Who held what at the peak, or as the snapshot was taken."""
    failed: Table | None
    """The same when the last allocation failed."""
    growing: Table | None
    """What grows from step to step; None where nothing does."""


class SnapshotPage(PageAnswer):
    """A snapshot of torch's memory."""

    file: str
    """Its name; "" where none lies beside the trace."""
    devices: list[SnapshotPart]


def memory_snapshot(library: Library, question: Choice) -> SnapshotPage:
    """What torch's snapshot beside the trace tells; of several ranks, beside that of the first."""
    file = library.snapshot_file(question)
    if file is None:
        return SnapshotPage(file="", devices=[])
    return SnapshotPage(file=word(file.name), devices=[_part(one) for one in library.snapshot(file).devices])


def _part(device: SnapshotDevice) -> SnapshotPart:
    facts: list[Fact] = []
    for title, text in device_entries(device):
        if title:
            facts.append(Fact(label=title, value=in_page_words(text)))
        else:
            facts[-1].value += f"; {in_page_words(text)}"
    growing = device.growth.holders if device.growth is not None else []
    return SnapshotPart(
        device=device_name(device),
        facts=facts,
        live=_table("snapshot_live", moment_words(device).capitalize(), device.peak),
        failed=_table("snapshot_failed", "Live when the last allocation failed", device.failures[-1])
        if device.failures
        else None,
        growing=table_of("snapshot_growing", "What grows from step to step", growth_columns(), growing)
        if growing
        else None,
    )


def _table(name: str, title: str, moment: SnapshotMoment) -> Table:
    return table_of(name, title, holder_columns(moment.allocated_bytes), moment.holders)
