"""Numbers as an editor shows them: `12.4 ms`, `38 %`, `1.50 GiB`."""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.quantities import bytes_text, spaced, time_text

UNCHANGED = "unchanged"


def duration(duration_ns: float) -> str:
    """Nanoseconds in three digits: `12.4 ms`; `0` for none."""
    return spaced(time_text(duration_ns)) or "0"


def durations(old_ns: float, new_ns: float) -> str:
    """From one time to another: `2.95 → 2.79 s`; the unit once where both have the same."""
    old, new = duration(old_ns), duration(new_ns)
    amount, _, unit = old.partition(" ")
    return f"{amount if unit == new.partition(' ')[2] else old} → {new}"


def difference(duration_ns: float) -> str:
    """So much more or less: `+3.10 ms`, `-120 ms`."""
    return f"{'+' if duration_ns > 0 else ''}{duration(duration_ns)}"


def relative(old: float, new: float) -> str:
    """So much more or less of the old time: `+25 %`, `-5.4 %`, `0 %`."""
    ratio = new / old - 1
    sign = "+" if ratio > 0 else "-" if ratio < 0 else ""
    return sign + share(abs(ratio))


def size(size_bytes: float) -> str:
    """Bytes in three digits: `1.50 MiB`; `0` for none."""
    return spaced(bytes_text(size_bytes)) or "0"


def share(ratio: float) -> str:
    """A ratio in percent, two digits: `38 %`, `4.2 %`, `<0.1 %`; `0 %` for none."""
    percent = 100 * ratio
    if not percent:
        return "0 %"
    if 0 < percent < 0.05:
        return "<0.1 %"
    return f"{percent:.0f} %" if abs(percent) >= 9.95 else f"{percent:.1f} %"


def count(value: float) -> str:
    """A mean of counts: `1,234`, `2.5`."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def in_message(text: str) -> str:
    """Text for a notification: VS Code makes links of `[words](address)` in it, commands included."""
    return printable(text).replace("](", "] (")


def change(old: float, new: float) -> str:
    """A change of a time: `+3.1 ms (+25 %)`, `-3.1 ms (gone)`, `+3.1 ms (new)`, `unchanged`."""
    difference = new - old
    if abs(difference) < 0.5:  # means of whole nanoseconds
        return UNCHANGED
    sign = "+" if difference > 0 else "-"
    if not old:
        words = "new"
    elif not new:
        words = "gone"
    else:
        words = relative(old, new)
    return f"{sign}{duration(abs(difference))} ({words})"


def number(value: float, kind: str) -> str:
    """A time, bytes, a share or a count."""
    words = {"time": duration, "bytes": size, "share": share}.get(kind)
    return words(value) if words else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
