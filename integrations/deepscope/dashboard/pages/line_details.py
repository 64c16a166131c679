"""All that is known of one line: its numbers, what holds it back, who calls it, and what its work is made of."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from deepscope.analysis.verdict import Reason
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import AtLine, Choice, Figure, PageAnswer, in_page_words, whole_place, word
from deepscope.dashboard.pages.calls import CallPath, call_paths
from deepscope.dashboard.pages.findings import ShownFinding, shown_finding
from deepscope.dashboard.pages.lines import notes_of, values_of
from deepscope.dashboard.pages.operators import rated_work
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import Costs, Line, Numbers, Profile
from deepscope.records.lines import NO_LINE
from deepscope.report.event_names import place_name
from deepscope.report.line_table import Sources, used_columns
from deepscope.report.line_tree import Node, NodeKind, below, fold_alike, lines_of
from deepscope.report.line_verdict import no_word, why_words
from deepscope.report.memory import peak_kinds

NODES = 5000
"""Of the tree below a line, the largest."""


class LineQuestion(Choice, kw_only=True, frozen=True):
    """Which line."""

    file: str = ""
    """As recorded; "" for the work of no user line."""
    line: int = 0
    function: str = ""
    """Where a line runs in several functions (a comprehension's); "" for the one that costs most."""
    fold: bool = False
    """Whether modules that differ in a number alone become one: `layers.*`."""


class LineCause(PageAnswer):
    """A part of a line's cost."""

    name: str
    help: str
    time_ns: int
    share: float


class FusedLine(PageAnswer):
    """A line that shares kernels with this one."""

    file: str
    line: int
    place: str
    shared_ns: int


class BelowNode(PageAnswer):
    """A node of the tree below a line; parents come before what is below them, the first is the line itself."""

    parent: int
    """-1 for the line."""
    kind: NodeKind
    name: str
    file: str
    line: int
    place: str
    """`functional.py:12`; "" where none is known."""
    self_ns: int
    total_ns: int
    backward_ns: int
    """Part of `total_ns`."""
    calls: int
    layers: int
    """How many modules that are alike it stands for."""


class LineDetails(AtLine, kw_only=True):
    """One line."""

    functions: list[str] = []
    """In which it runs, the most expensive first."""
    source: str = ""
    notes: list[str]
    is_library: bool = False
    figures: list[Figure]
    cost_share: float
    """Of what the run costs."""
    verdict: str = ""
    why: str = ""
    """What the verdict rests on, or why there is none."""
    causes: list[LineCause] = []
    """They sum to the cost."""
    cost_ns: int
    fused_with: list[FusedLine] = []
    held: list[Figure]
    """Bytes that were live at the peak, by what held them."""
    findings: list[ShownFinding]
    callers: list[CallPath]
    callers_left_out: int
    below: list[BelowNode]
    below_left_out: int
    """Smaller nodes; their time is in no node that is shown but in the totals above."""
    note: str
    """Why call paths and what is below are not known."""


def line(library: Library, question: LineQuestion) -> LineDetails:
    """One line's details.

    Raises:
        OptionError: nothing was measured there.
    """
    profile = library.profile(question)
    if not question.file:
        return _without_place(profile, profile.no_line, -1, question.fold)
    every = lines_of(profile)
    here = [at for at, one in enumerate(every) if one.file == question.file and one.line == question.line]
    here.sort(key=lambda at: -max(every[at].cost_ns, every[at].total_device_ns))
    if not here:
        where = f"{printable(question.file)[:200]}:{question.line}"
        raise OptionError("line", where, "nothing was measured on it")
    place = next((at for at in here if word(every[at].function) == question.function), here[0])
    return _of_line(profile, place, [every[at] for at in here], question.fold)


def _of_line(profile: Profile, place: int, here: list[Line], fold: bool) -> LineDetails:
    row = lines_of(profile)[place]
    root = profile.trace.project_root
    reason = no_word(row, profile.peaks)
    words = why_words(row, profile.peaks, on_device=profile.metric == "device")
    details = _without_place(profile, row, place, fold)
    return replace(
        details,
        file=row.file,
        line=row.line,
        place=whole_place(row.file, row.line, root),
        function=word(row.function),
        functions=[word(one.function) for one in here],
        source=word(Sources(profile).text(row), 1000) if row.exact or row.fused else "",
        notes=notes_of(row),
        is_library=place >= len(profile.lines),
        figures=[*details.figures, *_spread(row)],
        verdict=row.verdict,
        why=in_page_words(words.partition(": ")[2] if words else "" if reason == Reason.NO_COST else reason),
        causes=_causes(profile, row),
        fused_with=[
            FusedLine(
                file=one.file, line=one.line, place=whole_place(one.file, one.line, root), shared_ns=one.shared_ns
            )
            for one in row.shared_with
        ],
        findings=[
            shown_finding(profile, one) for one in profile.findings if (one.file, one.line) == (row.file, row.line)
        ],
    )


def _without_place(profile: Profile, row: Numbers, place: int, fold: bool) -> LineDetails:
    """What is known of any row; as it stands, of the work of no line."""
    found, left_out = _below(profile, place, fold)
    callers, callers_left_out = call_paths(profile, place)
    return LineDetails(
        file="",
        line=0,
        place=NO_LINE,
        function="",
        notes=["work that reached no line of the user's code"],
        figures=_figures(profile, row),
        cost_share=Costs.of(profile).share(row),
        cost_ns=row.cost_ns,
        held=[Figure(kind, size, "bytes") for kind, size in peak_kinds(row)],
        findings=[shown_finding(profile, one) for one in profile.findings if not one.file],
        callers=callers,
        callers_left_out=callers_left_out,
        below=found,
        below_left_out=left_out,
        note="" if profile.call_tree else "This trace tells no call paths.",
    )


def _figures(profile: Profile, row: Numbers) -> list[Figure]:
    numbers = used_columns(profile)
    values = values_of(row, profile, numbers)
    found = [
        Figure(one.title, value, one.kind, one.help)
        for one, value in zip(numbers, values, strict=True)
        if value or one.key == "cost"
    ]
    if row.framework_ns:
        found.append(
            Figure(
                "framework",
                row.framework_ns,
                "time",
                "The training framework's own, called from here; not in the numbers of the line.",
            )
        )
    if row.recording_ns:
        found.append(Figure("recording", row.recording_ns, "time", "What recording cost here, already taken off."))
    return found


def _spread(row: Line) -> list[Figure]:
    if row.spread is None or not row.spread.max_ns:
        return []
    return [
        Figure(f"rank {rank}", value, "time", f"Of the {which} rank.")
        for rank, value, which in (
            (row.spread.min_rank, row.spread.min_ns, "fastest"),
            (row.spread.max_rank, row.spread.max_ns, "slowest"),
        )
    ]


_ON_DEVICE = {
    "compute-bound": ("computing", "Kernels that need longer for their operations than for their bytes."),
    "memory-bound": ("moving memory", "Kernels that need longer for their bytes than for their operations."),
    "": ("rated work", "Kernels whose bytes are known, on a device whose peaks are not."),
    "short_ns": ("short kernels", "Kernels too short to fill the device."),
    "communication_ns": ("collectives", "Collectives that no other kernel hides."),
    "copies_ns": ("copies", "Copies between host and device that no kernel hides."),
    "unknown_ns": ("other kernels", "Work whose bytes are not known."),
    "hidden_ns": ("hidden", "Collectives and copies that other kernels hide: they hold nothing back."),
    "waiting_ns": ("idle, waiting", "The device idle while the CPU waited for it."),
    "data_ns": ("idle, data", "The device idle while data was loaded or copied to it."),
    "launch_ns": ("idle, launching", "The device idle while operators and the runtime launched work."),
    "host_ns": ("idle, host", "The device idle while the CPU did anything else."),
}
_ON_CPU = _ON_DEVICE | {
    "": ("rated work", "Operators whose bytes are known, on a processor whose peaks are not."),
    "compute-bound": ("computing", "Operators that need longer for their operations than for their bytes."),
    "memory-bound": ("moving memory", "Operators that need longer for their bytes than for their operations."),
    "short_ns": ("dispatch", "Operators so short that they are all dispatch."),
    "communication_ns": ("collectives", "Collectives."),
    "unknown_ns": ("other operators", "Work whose bytes are not known."),
    "waiting_ns": ("Python, blocked", "Python asleep, or waiting for a file, a lock or another thread."),
    "data_ns": ("waiting for data", "Waiting for the data loader."),
    "core_wait_ns": ("waiting for a core", "Python that could run while other work had the cores."),
    "host_ns": ("Python, running", "The interpreter's own work."),
}


def _causes(profile: Profile, row: Line) -> list[LineCause]:
    names = _ON_DEVICE if profile.metric == "device" else _ON_CPU
    rated = rated_work(row.why, profile.peaks)
    times = {key: getattr(row.why, key) if key.endswith("_ns") else rated[key] for key in names}
    whole = sum(times.values())
    return [
        LineCause(name=names[key][0], help=names[key][1], time_ns=time_ns, share=time_ns / whole)
        for key, time_ns in sorted(times.items(), key=lambda item: -item[1])
        if time_ns
    ]


def _below(profile: Profile, place: int, fold: bool) -> tuple[list[BelowNode], int]:
    tree = below(profile, place)
    rows = list(_numbered(fold_alike(tree) if fold else tree))
    kept = _largest([node.total_device_ns for _, node in rows])
    at = {number: shown for shown, number in enumerate(kept)}
    nodes = [_node(profile, rows[number][1], at.get(rows[number][0], -1)) for number in kept]
    return nodes, len(rows) - len(kept)


def _node(profile: Profile, node: Node, parent: int) -> BelowNode:
    return BelowNode(
        parent=parent,
        kind=node.kind,
        name=word(node.name) if node.kind == "line" else word(place_name(node.kind, node.name)),
        file=node.file,
        line=node.line,
        place=whole_place(node.file, node.line, profile.trace.project_root) if node.file and node.line else "",
        self_ns=node.self_device_ns,
        total_ns=node.total_device_ns,
        backward_ns=node.backward_device_ns,
        calls=node.calls,
        layers=node.layers,
    )


def _numbered(tree: Node) -> Iterable[tuple[int, Node]]:
    """The nodes, parents first, each with the number of its parent."""
    above: list[int] = []
    for number, (depth, node) in enumerate(tree.walk()):
        del above[depth:]
        yield above[-1] if above else -1, node
        above.append(number)


def _largest(totals: list[int]) -> list[int]:
    """The numbers of the largest nodes: a parent has no less than what is below it, and comes first among equals."""
    order = sorted(range(len(totals)), key=lambda number: (-totals[number], number))
    return sorted(order[:NODES])
