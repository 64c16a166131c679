"""The kernels: how long, how launched, how they fill the device; and one of them in detail."""

from __future__ import annotations

from deepscope.dashboard.answer import Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.below import NamedTime, OwnerLine, lines_with
from deepscope.dashboard.pages.tables import key_of, share_column, table_of, where
from deepscope.dashboard.pages.words import in_page_words, word
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import Kernel, KernelKind, Profile
from deepscope.report.event_names import readable
from deepscope.report.kernel_columns import launch_sizes, range_words, shared_words
from deepscope.report.table_column import ColumnOf

_LONGEST = 4000


class Kernels(PageAnswer):
    """A row for each kernel, copy, fill and collective."""

    table: Table


class KernelAsked(Choice, kw_only=True, frozen=True):
    """Which row of the kernels."""

    key: str


class KernelDetails(PageAnswer):
    """What is known of a kernel beside the numbers of its row."""

    name: str
    """As the trace has it."""
    kind: KernelKind
    operator: NamedTime | None
    """The operator that launches most of it; its time and calls are the operator's own."""
    lines: list[OwnerLine]


def kernels(library: Library, question: Choice) -> Kernels:
    """The kernels, those first that take longest."""
    profile = library.profile(question)
    rows = sorted(profile.kernels, key=lambda row: -row.device_ns)
    return Kernels(table=table_of("kernels", "Kernels", _columns(profile), rows, keys=kernel_key))


def kernel(library: Library, question: KernelAsked) -> KernelDetails:
    """One kernel in detail."""
    profile = library.profile(question)
    row = next((one for one in profile.kernels if kernel_key(one) == question.key), None)
    if row is None:
        raise OptionError("key", question.key, "no such kernel is here")
    launcher = next((one for one in profile.operators if one.name == row.operator), None)
    return KernelDetails(
        name=printable(row.name)[:_LONGEST],
        kind=row.kind,
        operator=None
        if launcher is None
        else NamedTime(
            key=key_of(launcher.name),
            label=word(readable(launcher.name)),
            time_ns=launcher.self_device_ns,
            calls=launcher.calls,
        ),
        lines=lines_with(profile, "kernel", row.name),
    )


def kernel_key(row: Kernel) -> str:
    """The word of an address for a row."""
    return key_of(row.name, row.kind)


def _columns(profile: Profile) -> list[ColumnOf]:
    return [
        ColumnOf("label", "kernel", "text", lambda row: readable(row.name)),
        share_column("device_ns", profile.totals.device_ns, "Its part of all device work."),
        ColumnOf("device_ns", "device", "time", lambda row: row.device_ns, "The sum of its durations."),
        ColumnOf("calls", "calls", "count", lambda row: row.calls, "How often it ran.", 1),
        ColumnOf("mean_ns", "mean", "time", lambda row: row.mean_ns, "Its mean duration.", 2),
        ColumnOf("min_ns", "min", "time", lambda row: row.min_ns, "Its shortest duration.", 10),
        ColumnOf("max_ns", "max", "time", lambda row: row.max_ns, "Its longest duration.", 3),
        ColumnOf(
            "grid",
            "grid",
            "text",
            lambda row: launch_sizes(row.grid, row.min_blocks, row.max_blocks),
            "Blocks, as most launches have them; + where others have other ones.",
            7,
        ),
        ColumnOf(
            "block",
            "block",
            "text",
            lambda row: launch_sizes(row.block, row.min_threads, row.max_threads),
            "Threads of a block, as most launches have them.",
            8,
        ),
        ColumnOf(
            "registers",
            "registers",
            "text",
            lambda row: range_words(row.min_registers, row.max_registers),
            "Of a thread.",
            9,
        ),
        ColumnOf(
            "shared", "shared", "text", lambda row: in_page_words(shared_words(row)), "Shared memory of a block.", 10
        ),
        ColumnOf(
            "occupancy",
            "occupancy",
            "share",
            lambda row: row.occupied_ns / row.occupancy_known_ns if row.occupancy_known_ns else None,
            "The estimated share of the warps that the device can hold.",
            6,
        ),
        ColumnOf(
            "sm_blocks",
            "blocks/SM",
            "count",
            lambda row: row.sm_blocks_ns / row.sm_blocks_known_ns if row.sm_blocks_known_ns else None,
            "Blocks for each multiprocessor; below 1 some have none.",
            11,
        ),
        ColumnOf(
            "uses_tensor_cores",
            "tensor cores",
            "text",
            lambda row: "yes" if row.uses_tensor_cores else "",
            "As its name tells.",
            12,
        ),
        ColumnOf(
            "delay_ns",
            "delay",
            "time",
            lambda row: row.delay_ns / row.launched if row.launched else None,
            "From the launching call to the start on the device, on average.",
            5,
        ),
        ColumnOf(
            "queued",
            "queue",
            "count",
            lambda row: row.queued / row.launched if row.launched else None,
            "Work of the device before it at its launch, on average.",
            13,
        ),
        ColumnOf("kind", "kind", "text", lambda row: row.kind, "Kernel, copy, fill or collective.", 14),
        ColumnOf(
            "operator",
            "launched by",
            "text",
            lambda row: readable(row.operator),
            "The operator that launches most of it.",
            4,
        ),
        where(profile, none="", rank=4),
    ]
