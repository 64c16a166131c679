"""One word for what holds a line back, from its cost by cause; docs/numbers.md has the definitions as a table.

It needs no NumPy: a profile from the cache is judged anew whenever it is loaded, by the peaks that are given then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deepscope.records import Peaks, Profile, Rate, Verdict, Why

ENOUGH = 0.5
"""A cause gives the word if it has at least this share of the cost."""

ALLOWED: Mapping[Verdict, frozenset[str]] = {
    "compute-bound": frozenset({"DS003", "DS006"}),  # whatever a line does, it may do it while data is awaited
    "memory-bound": frozenset({"DS003"}),
    "launch-bound": frozenset({"DS003", "DS004", "DS007", "DS011", "DS034"}),
    "host-bound": frozenset({"DS003", "DS004", "DS005", "DS007", "DS011", "DS013", "DS019", "DS034"}),
    "waiting": frozenset({"DS003", "DS006", "DS019"}),
    "data": frozenset({"DS003", "DS006"}),
    "communication": frozenset({"DS006"}),
    "slowed by recording": frozenset(
        {"DS003", "DS007", "DS034"}
    ),  # by loading and operators, not by the line's Python time
}
"""The findings that may stand at a line with a verdict, of those that say what holds the line back. A line that is
`mixed`, waits for a core (for other programs, that is), or has no verdict, may have any of them."""
_NAMES_A_CAUSE = frozenset[str]().union(*ALLOWED.values())
"""The other findings hold whatever the rest of a line's cost is: a wait that later lines pay for, work that is done
without need, exposed communication, a setting, the machine, memory, other ranks."""


class Reason:
    """Why there is no word."""

    NO_COST = "it costs the device no time"
    NO_BYTES = "arithmetic in torch"
    """Of which the bytes are not known: no shapes were recorded, or operators have no formula."""
    NO_PEAKS = "the device's peaks are not known"


class Judgement(NamedTuple):
    """A word, and what it rests on."""

    word: Verdict
    share: float
    """Of the cost that the word's cause has, 0 to 1."""
    reason: str
    """Why there is no word; "" with one."""
    rates: tuple[Rate, ...]
    """The work that the word is about, where that is compute-bound or memory-bound."""


def limit_of(rate: Rate, peaks: Peaks) -> tuple[Verdict, float]:
    """Which roof is the lower one for some work, and how many nanoseconds it would take at that.

    "" and 0 for operations of a type whose peak is not known.
    """
    memory_ns = rate.moved_bytes / peaks.memory_bytes_per_s * 1e9
    if not rate.flops:
        return "memory-bound", memory_ns
    best = peaks.flops_per_s.get(rate.dtype)
    if best is None:
        return "", 0.0
    compute_ns = rate.flops / best * 1e9
    return ("compute-bound", compute_ns) if compute_ns >= memory_ns else ("memory-bound", memory_ns)


def judgement(why: Why, peaks: Peaks | None, *, wait_ns: int = 0) -> Judgement:
    """The word for a cost.

    Args:
        why: the cost by cause.
        peaks: of the device, None where they are not known.
        wait_ns: how long the CPU waited for the device, busy or idle.
    """
    rated: dict[Verdict, list[Rate]] = {"compute-bound": [], "memory-bound": [], "": []}
    for rate in why.rates:
        rated[limit_of(rate, peaks)[0] if peaks is not None else ""].append(rate)
    times: dict[Verdict, int] = {word: sum(rate.device_ns for rate in rates) for word, rates in rated.items()}
    without_peak = times.pop("")
    by_cpu = why.launch_ns + why.short_ns, why.host_ns
    times |= {
        "launch-bound" if by_cpu[0] >= by_cpu[1] else "host-bound": sum(by_cpu),
        "waiting": why.waiting_ns,
        "data": why.data_ns + why.copies_ns,
        "waiting for a core": why.core_wait_ns,
        "communication": why.communication_ns,
    }
    unknown = without_peak + why.unknown_ns
    cost = sum(times.values()) + unknown
    if wait_ns > cost:
        return Judgement("waiting", 1.0, "", ())
    if not cost:
        return Judgement("", 0.0, Reason.NO_COST, ())
    word = max(times, key=times.__getitem__)
    if times[word] >= ENOUGH * cost:
        return Judgement(word, times[word] / cost, "", tuple(rated.get(word, ())))
    if unknown >= ENOUGH * cost:
        return Judgement("", 0.0, Reason.NO_PEAKS if without_peak > why.unknown_ns else Reason.NO_BYTES, ())
    return Judgement("mixed", times[word] / cost, "", ())


def allows(verdict: Verdict, code: str) -> bool:
    """Whether a finding may stand at a line with a verdict: it must not name another cause."""
    return verdict not in ALLOWED or code not in _NAMES_A_CAUSE or code in ALLOWED[verdict]


def judge(profile: Profile, peaks: Peaks | None) -> None:
    """Sets the verdict of each line and operator of a profile, and the peaks that it rests on.

    Findings that contradict the verdict of their line are taken out.
    """
    profile.peaks = peaks
    for line in profile.lines:
        line.verdict = "slowed by recording" if line.slowed else judgement(line.why, peaks, wait_ns=line.wait_ns).word
    verdicts = {(line.file, line.line): line.verdict for line in profile.lines}
    profile.findings = [one for one in profile.findings if allows(verdicts.get((one.file, one.line), ""), one.code)]
    for operator in (*profile.operators, *profile.operators_in_detail):
        operator.verdict = judgement(operator.why, peaks).word
