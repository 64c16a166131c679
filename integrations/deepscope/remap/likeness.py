"""What a line's text says by itself, and how alike two texts are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from deepscope.records import SourceFile
from deepscope.trace.source_lines import source_lines

MEANINGFUL_LENGTH = 6


def is_meaningful(line: str) -> bool:
    """Whether a line says enough to be recognised elsewhere: a lone bracket, `else:` or a blank line does not."""
    stripped = line.strip()
    return len(stripped) >= MEANINGFUL_LENGTH and any(character.isalnum() for character in stripped)


def without_indent(line: str) -> str:
    """A line as it is compared: a line that a new `if` or `with` has moved to the right is the same line."""
    return line.lstrip(" \t\f")


def is_same_text(recorded: SourceFile, lines: Sequence[str]) -> bool:
    """Whether `lines` is the recorded text, whatever its line ends; by hash where the trace has no text.

    A hash is of the file's bytes, so both usual line ends are tried, with and without the last one (a notebook's cell
    has none).
    """
    if recorded.text is not None:
        return _without_end(source_lines(recorded.text)) == _without_end(lines)
    if not recorded.sha256:
        return False
    body = _without_end(lines)
    for end in ("\n", "\r\n"):
        text = end.join(body)
        if any(_digest(text + last) == recorded.sha256 for last in (end, "")):
            return True
    return False


def shared_ratio(recorded: str, lines: Sequence[str]) -> float:
    """The share of the recorded text's telling lines that stand in `lines` too, 0 to 1; 0 where none is telling."""
    wanted = {line.strip() for line in source_lines(recorded) if is_meaningful(line)}
    if not wanted:
        return 0.0
    return len(wanted & {line.strip() for line in lines}) / len(wanted)


def _without_end(lines: Sequence[str]) -> list[str]:
    return list(lines[:-1] if lines and not lines[-1] else lines)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
