"""The words for kernels that torch.compile fused from several lines."""

from __future__ import annotations

from pathlib import PurePath

from deepscope.records import Line


def fused_words(line: Line, most: int) -> str:
    """The lines that share kernels with this one, at most so many by number: `fused with lines 18, 19 and 2 more`."""
    here = [partner for partner in line.shared_with if partner.file == line.file]
    elsewhere = [partner for partner in line.shared_with if partner.file != line.file]
    named = [str(number) for number in sorted(partner.line for partner in here[:most])]
    named += [f"{PurePath(partner.file).name}:{partner.line}" for partner in elsewhere[: most - len(named)]]
    left = len(line.shared_with) - len(named)
    lines = "line" if len(named) == 1 else "lines"
    return f"fused with {lines} {', '.join(named)}" + (f" and {left} more" if left else "")
