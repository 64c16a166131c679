"""Whether the machine was busy while a run was recorded, so that its times are longer than they would be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepscope.records import TraceInfo

_WORTH_A_WORD = 0.05
"""From this part of the time on, what others used tells in the times."""
_OTHERS = 0.1
"""Other processes that used a smaller part of the cores were not what took them."""
_RATIOS = ("core_wait_ratio", "throttled_ratio", "stolen_ratio")


def busy_words(info: TraceInfo) -> str:
    """`the machine was busy: …`; "" where it was not, or where that is not known."""
    use = info.recording.get("machine")
    reasons = list(_reasons(use)) if isinstance(use, dict) else []
    return f"the machine was busy: {'; '.join(reasons)}" if reasons else ""


def busy_ratio(info: TraceInfo) -> float:
    """The largest part of the time that others took; 0 where the machine was not busy, or where that is not known."""
    use = info.recording.get("machine")
    ratios = [_number(use, name) for name in _RATIOS] if isinstance(use, dict) else []
    return max((ratio for ratio in ratios if ratio >= _WORTH_A_WORD), default=0.0)


def _reasons(use: dict[str, Any]) -> Iterator[str]:
    cores, quota = _number(use, "cores"), _number(use, "quota_cores")
    waited, others = _number(use, "core_wait_ratio"), _number(use, "others_cores")
    if waited >= _WORTH_A_WORD:
        who = (
            f"other processes used {others:.1f} of {cores:.0f} cores"
            if others >= _OTHERS * cores > 0
            else "it ran more threads than there are cores"
        )
        yield f"the program waited for a core {waited:.0%} of the time that it could run; {who}"
    if (throttled := _number(use, "throttled_ratio")) >= _WORTH_A_WORD:
        yield f"the container's quota of {quota:g} cores was used up in {throttled:.0%} of its periods"
    if (stolen := _number(use, "stolen_ratio")) >= _WORTH_A_WORD:
        yield f"its host gave {stolen:.0%} of its cores' time to other machines"


def _number(use: dict[str, Any], name: str) -> float:
    value = use.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0
