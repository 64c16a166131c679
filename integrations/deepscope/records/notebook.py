"""How a notebook shows a Profile: its costliest lines as a table of escaped text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from deepscope.printable import printable
from deepscope.records.costs import Costs
from deepscope.records.lines import NO_LINE

if TYPE_CHECKING:
    from deepscope.records.numbers import Numbers
    from deepscope.records.profile import Profile

_ROWS = 15


def notebook_table(profile: Profile) -> str:
    """The lines by cost, what no line has, and where the numbers come from; no markup of the trace's own."""
    device = "device" if profile.metric == "device" else "operators"
    titles = ("line", "function", "cost", f"{device}, ms", "idle, ms", "CPU, ms", "calls", "source")
    costs = Costs.of(profile)
    lines = costs.ranked(profile.lines)
    rows = [
        _row([f"{_short(one.file)}:{one.line}", one.function, *_figures(one, costs), (one.text or "").strip()])
        for one in lines[:_ROWS]
    ]
    rows.append(_row([NO_LINE, "", *_figures(profile.no_line, costs), ""]))
    if len(lines) > _ROWS:
        rows.append(_row([f"({len(lines) - _ROWS} more lines)", *[""] * 7]))
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    totals = profile.totals
    caption = (
        f"{printable(profile.trace.device) or 'unknown device'}: {totals.steps} steps, "
        f"{totals.wall_ns / 1e6:,.3f} ms, {device} {totals.device_ns / 1e6:,.3f} ms"
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _figures(numbers: Numbers, costs: Costs) -> list[str]:
    share = f"{100 * costs.share(numbers):.1f} %" if costs.whole_ns else ""
    times = (numbers.self_device_ns, numbers.idle_ns, numbers.self_cpu_ns)
    return [share, *(f"{ns / 1e6:,.3f}" for ns in times), f"{numbers.calls:,}"]


def _row(cells: list[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(printable(cell))}</td>' for cell in cells)}</tr>"


def _short(path: str) -> str:
    """The file with the folder it lies in."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])
