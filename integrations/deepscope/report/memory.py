"""Memory in the report: the rows by line, and what its head says of the peak and of an allocation that failed."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from deepscope.printable import printable
from deepscope.quantities import bytes_text, share_text
from deepscope.records import DeviceMemory, HeldByLine, HeldMemory, Line, Numbers, Profile
from deepscope.records.source_files import short_place
from deepscope.report.table_column import ColumnOf, field

KINDS = ("parameters", "gradients", "optimizer", "inputs", "activations", "temporaries", "unknown")
"""In the names of fields: `activations_bytes`, `peak_activations_bytes`."""
FAILURE_LINES = 5
_WORDS = {"optimizer": "optimizer state"}


def kind_words(kind: str) -> str:
    """What a kind is called."""
    return _WORDS.get(kind, kind)


def memory_by_line(profile: Profile) -> list[HeldByLine]:
    """What was live by line: when an allocation failed, else at the peak; largest first, all rows sum to the whole."""
    if profile.memory.failure is not None:
        return list(profile.memory.failure.lines)
    rows = [_at_peak(line, line) for line in profile.lines if line.peak_bytes]
    if profile.no_line.peak_bytes:
        rows.append(_at_peak(profile.no_line, None))
    return sorted(rows, key=lambda row: -row.size_bytes)


def _at_peak(numbers: Numbers, line: Line | None) -> HeldByLine:
    place = (line.file, line.line, line.function, line.exact) if line is not None else ("", 0, "", False)
    row = HeldByLine(file=place[0], line=place[1], function=place[2], exact=place[3], size_bytes=numbers.peak_bytes)
    for kind in KINDS:
        setattr(row, f"{kind}_bytes", getattr(numbers, f"peak_{kind}_bytes"))
    return row


def peak_kinds(numbers: Numbers) -> list[tuple[str, int]]:
    """What the bytes at the peak are, in words, with how many are each; the largest first."""
    return _kinds(numbers, "peak_")


def _kinds(record: Numbers | HeldMemory, prefix: str = "") -> list[tuple[str, int]]:
    sizes = [(kind_words(kind), int(getattr(record, f"{prefix}{kind}_bytes"))) for kind in KINDS]
    return sorted((one for one in sizes if one[1]), key=lambda one: -one[1])


def held_columns() -> list[ColumnOf]:
    """The columns of what is live: the whole, and its kinds."""
    kinds = zip(KINDS, (4, 2, 3, 5, 1, 6, 7), strict=True)
    return [
        field("size_bytes", "live", "bytes", "The kinds sum to it."),
        *(
            ColumnOf(f"{kind}_bytes", kind_words(kind), "bytes", attrgetter(f"{kind}_bytes"), rank=rank)
            for kind, rank in kinds
        ),
    ]


def memory_entries(profile: Profile) -> Iterator[tuple[str, str]]:
    """Entries of the report's head, each a title and its printable text."""
    memory = profile.memory
    failure = memory.failure
    if failure is not None:
        yield "failed", printable(f"{failure.error}: {failure.message}")
        yield (
            "",
            printable(
                f"live then on {failure.device}: {bytes_text(failure.held.size_bytes) or '0'}{held_words(failure.held)}"
            ),
        )
        for row in failure.lines[:FAILURE_LINES]:
            place = short_place(row.file, row.line, profile.trace.project_root) if row.file else "no user line"
            yield "", printable(f"{bytes_text(row.size_bytes)} at {place}{held_words(row)}")
    for device in memory.devices:
        yield "memory", printable(_device(device, profile))
    if memory.devices and not memory.owners_known:
        yield "", "what held it is not known: this recording tells allocations, and not whose they were"


def _device(device: DeviceMemory, profile: Profile) -> str:
    peak = f"{device.device}: {bytes_text(device.peak.size_bytes) or '0'} at the peak"
    if device.peak.size_bytes != device.largest_peak_bytes:
        peak += f" of {profile.totals.ranks} ranks ({bytes_text(device.largest_peak_bytes)} on one)"
    reserved = max((point.reserved_bytes for point in device.curve), default=-1)
    if reserved > 0:
        peak += f", {bytes_text(reserved)} reserved"
    if device.capacity_bytes:
        peak += f" of {bytes_text(device.capacity_bytes)}"
    return peak + (held_words(device.peak) if profile.memory.owners_known else "")


def held_words(held: HeldMemory) -> str:
    """The kinds and their shares, the largest first."""
    parts = [f"{kind} {share_text(size, held.size_bytes)}" for kind, size in _kinds(held)]
    return f" ({', '.join(parts)})" if parts else ""
