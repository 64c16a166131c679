"""Diagnostics that the user does not want to see: everywhere, in a file, or on a line."""

from __future__ import annotations

import re

from deepscope_lsp.engine.recorded_path import parts_of

_ENTRY = re.compile(r"(?P<code>[^:]+)(?::(?P<end>(?:[A-Za-z]:(?=[\\/]))?[^:]*)(?::(?P<text>.*))?)?", re.DOTALL)


def hides(entry: str, code: str, file: str, text: str) -> bool:
    """Whether an entry hides a code on a line of a recorded file.

    `DS001` hides it everywhere, `DS001:model/net.py` in files whose path ends so, `DS001:model/net.py:loss.item()` on
    lines of such files that read so (an edited line is another one).
    """
    match = _ENTRY.fullmatch(entry)
    if match is None or match["code"] != code:
        return False
    if match["end"] is None:
        return True
    wanted = parts_of(match["end"])
    if parts_of(file).common_suffix(wanted) < len(wanted.parts):
        return False
    return match["text"] is None or (bool(text.strip()) and match["text"].strip() == text.strip())


def hiding_entry(code: str, file: str | None, text: str) -> str:
    """The entry that hides a code: on a line of this text, where there is none in the file, without a file everywhere.

    Of a path the last two parts are kept: enough to name a file, and free of what another machine calls its folders.
    """
    if file is None:
        return code
    end = "/".join([part for part in file.replace("\\", "/").split("/") if part][-2:])
    return f"{code}:{end}:{text.strip()}" if text.strip() else f"{code}:{end}"
