"""One word for what holds a line back, from its cost by cause; docs/numbers.md has the definitions as a table.

It needs no NumPy: a profile from the cache is judged anew whenever it is loaded, by the peaks that are given then.
"""

from __future__ import annotations

from typing import NamedTuple

from deepscope.records import Peaks, Profile, Rate, Verdict, Why

__all__ = ["ENOUGH", "Judgement", "Reason", "judge", "judgement", "limit_of"]

ENOUGH = 0.5
"""A cause gives the word if it has at least this share of the cost."""


class Reason:
    """Why there is no word."""

    NO_COST = "it costs the device no time"
    NO_BYTES = "the bytes of its work are not known (no shapes recorded, or operators without a formula)"
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


def judge(profile: Profile, peaks: Peaks | None) -> None:
    """Sets the verdict of each line and operator of a profile, and the peaks that it rests on."""
    profile.peaks = peaks
    for line in profile.lines:
        line.verdict = judgement(line.why, peaks, wait_ns=line.wait_ns).word
    for operator in (*profile.operators, *profile.operators_in_detail):
        operator.verdict = judgement(operator.why, peaks).word
