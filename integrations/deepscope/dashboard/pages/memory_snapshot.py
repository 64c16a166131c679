"""The Memory page's section on torch's snapshot beside the trace: the report's tables and words."""

from __future__ import annotations

from deepscope.dashboard.answer import Choice, Fact, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.tables import in_page_words, table_of, word
from deepscope.records.memory import SnapshotDevice, SnapshotMoment
from deepscope.report.snapshot_report import device_entries, device_name, growth_columns, holder_columns, moment_words


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
