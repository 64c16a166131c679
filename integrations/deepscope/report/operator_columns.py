"""The columns of the table of operators, by name alone or in detail."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.analysis.numbers.flop_formulas import lacks_formula
from deepscope.records import Operator, OperatorInDetail, Profile
from deepscope.report.bars import share
from deepscope.report.column_kinds import counts, names, sizes, times
from deepscope.report.event_names import readable
from deepscope.report.layout import Column, cut_end
from deepscope.report.shapes import shapes_text
from deepscope.report.style import Styles
from deepscope.report.wording import count_text, printable, rate_text, share_text

__all__ = ["flops_missing", "operator_columns", "operator_rate", "tensor_cores_text"]

_DETAIL_WIDTH = 20


def operator_columns(rows: Sequence[Operator], profile: Profile, styles: Styles) -> list[Column]:
    """The columns for operators; those in detail have their shapes and stacks, too."""
    device = profile.metric == "device"  # without one the CPU's times are the columns before
    return [
        share([row.self_device_ns for row in rows], profile.totals.device_ns, styles),
        times("self", [row.self_device_ns for row in rows]),
        times("total", [row.total_device_ns for row in rows], rank=1),
        times("CPU", [row.self_cpu_ns if device else 0 for row in rows], rank=2),
        times("total CPU", [row.total_cpu_ns if device else 0 for row in rows], rank=4),
        counts("calls", [row.calls for row in rows], rank=3),
        Column("FLOPs", [count_text(row.flops) or flops_missing(row) for row in rows], rank=5),
        Column("FLOP/s", [operator_rate(row, "flops") for row in rows], rank=6),
        sizes("moves", [row.moved_bytes for row in rows], rank=8),
        Column("B/s", [operator_rate(row, "moved_bytes") for row in rows], rank=6),
        sizes("memory", [row.allocated_bytes for row in rows], rank=9),
        Column("cores", [tensor_cores_text(row) if device else "" for row in rows], rank=7),
        Column("why", [row.verdict for row in rows], rank=1, right=False),
        names("operator", [readable(row.name) for row in rows]),
        *_details(rows),
    ]


def _details(rows: Sequence[Operator]) -> list[Column]:
    detailed = [row for row in rows if isinstance(row, OperatorInDetail)]
    if len(detailed) < len(rows):
        return []
    listed = (
        ("shapes", [shapes_text(row.in_shapes, row.dtypes) for row in detailed]),
        ("to", [shapes_text(row.out_shapes) for row in detailed]),
        ("called from", [_stack(row.stack) for row in detailed]),
    )
    ranks = {"to": 10}
    return [
        Column(title, texts, rank=ranks.get(title, 0), right=False, min_width=_DETAIL_WIDTH, cut=cut_end)
        for title, texts in listed
    ]


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _stack(text: str) -> str:
    from deepscope.trace.names import parse_call_stack  # imports NumPy, which no other table needs

    frames = [f"{_file_name(one.path)}:{one.line}" for one in parse_call_stack(text)]
    return printable(" < ".join(frames))


def operator_rate(row: Operator, field: str) -> str:
    """Operations or bytes a second, `632T`, over the work of which they are known."""
    rates = [rate for rate in row.why.rates if getattr(rate, field)]
    count = sum(getattr(rate, field) for rate in rates)
    return rate_text(count, sum(rate.device_ns for rate in rates), "").replace(" ", "")


def flops_missing(row: Operator) -> str:
    """Why an operator that multiplies has no FLOPs; "" for one that has some, or does not multiply."""
    if row.flops or not row.calls_without_flops:
        return ""
    return "no formula" if lacks_formula(row.name) else "unknown"


def tensor_cores_text(row: Operator) -> str:
    """How much of its device time is in kernels that use tensor cores; "" for what cannot use them."""
    if not row.tensor_core_eligible or not row.total_device_ns:
        return ""
    return share_text(row.tensor_core_total_ns, row.total_device_ns) or "0%"
