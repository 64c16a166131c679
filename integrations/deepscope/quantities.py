"""How numbers are worded: three digits, units, shares, runs of them drawn together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_TIME_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))
_BYTE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_RATES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
_COUNT_UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"))
TIMES = "\N{MULTIPLICATION SIGN}"
_QUANTITY = re.compile(
    r"(?<![\w./\\-])([+-]?\d[\d.,]*(?:e[+-]?\d+)?)((?:[nµm]?s|(?:[KMGT]i)?B(?:/s)?)(?![\w/\\-]|\.\w)|%)"
)
"""A number with its unit, alone: `llama-70B/net.py` and `A100 80GB` are names."""


def time_text(duration_ns: float) -> str:
    """Nanoseconds in three digits: `12.3ms`; "" for 0."""
    return _scaled(duration_ns, _TIME_UNITS)


def bytes_text(size_bytes: float) -> str:
    """Bytes in three digits: `1.50MiB`; "" for 0."""
    return _scaled(size_bytes, _BYTE_UNITS)


def rate_text(count: int, duration_ns: int, unit: str) -> str:
    """So much in a time: `84.2 TFLOP/s`, `1.20 TB/s`; "" where either is 0."""
    if not count or not duration_ns:
        return ""
    per_second = count / duration_ns * 1e9
    for size, letter in _RATES:
        if per_second >= size * 0.9995:
            return f"{_three_digits(per_second / size)} {letter}{unit}"
    return f"{_three_digits(per_second)} {unit}"


def count_text(count: float) -> str:
    """A count: `12,345`, from a million on `1.23M`; a mean below 100 in three digits; "" for 0."""
    if abs(count) >= 10**6:
        return _scaled(count, _COUNT_UNITS)
    if count != int(count) and abs(count) < 100:
        return f"{count:.3g}"
    return f"{round(count):,}" if count else ""


def share_text(part: float, whole: float) -> str:
    """A part in percent with one decimal: `12.3%`; "" for 0, `<0.1%` for what would read as 0."""
    if not part or not whole:
        return ""
    percent = 100 * part / whole
    return "<0.1%" if 0 < percent < 0.05 else f"{percent:.1f}%"


def number_text(value: float, kind: str) -> str:
    """A number of a kind: a time, bytes, a share of 1, a ratio or a count; 0, too."""
    if kind == "share":
        return share_text(value, 1) or "0%"
    if kind == "ratio":
        return f"{value:.2f}{TIMES}"
    words = {"time": time_text, "bytes": bytes_text}.get(kind, count_text)
    return words(value) or "0"


def spaced(sentence: str) -> str:
    """A sentence with blanks before units, as pages and editors have them: `12.4 ms`, `38 %`."""
    return _QUANTITY.sub(r"\1 \2", sentence)


def _scaled(value: float, units: tuple[tuple[int, str], ...]) -> str:
    if not value:
        return ""
    for size, unit in units:
        # 999.6 would read as 1000: it goes to the larger unit.
        if abs(value) >= size * 0.9995 or size == units[-1][0]:
            return _three_digits(value / size) + unit
    raise AssertionError("the last unit takes everything")


def _three_digits(value: float) -> str:
    if value == int(value) and abs(value) < 1000:
        return f"{value:.0f}"
    size = abs(value)
    if size < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if size < 99.95 else f"{value:.0f}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers with runs drawn together, of ranks and of steps: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


_RUNS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(, [0-9]{1,9}(-[0-9]{1,9})?)*")


@lru_cache(maxsize=4096)
def listed(text: str) -> tuple[int, ...]:
    """The numbers of such a text, ascending; none of any other text."""
    if not _RUNS.fullmatch(text):
        return ()
    numbers: list[int] = []
    for run in text.split(", "):
        first, _, last = run.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)
