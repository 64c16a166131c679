"""What is remembered of a workspace folder between two starts: path mappings, the chosen trace, hidden findings."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from deepscope.store.cache import cache_folder
from deepscope_lsp.engine.recorded_path import parts_of


class Memory(msgspec.Struct, kw_only=True):
    """The file's content."""

    root: str = ""
    path_mappings: dict[str, str] = {}
    trace: str = ""
    """The trace or folder that was picked; "" for the newest."""
    is_run: bool = False
    """Whether the whole run of that trace was picked, with all its ranks."""
    baseline: str = ""
    hidden: list[str] = []
    """Hidden findings: `code` or `code:path`."""


class Remembered:
    """One workspace folder's memory, in the user's cache folder; losing it costs a question."""

    def __init__(self, root: str) -> None:
        digest = hashlib.blake2b(os.fsencode(root), digest_size=12).hexdigest()
        self._path = cache_folder() / "editor" / f"{digest}.json"
        self.memory = self._read(root)

    def save(self) -> None:
        """Writes what is in `memory`; a folder that cannot be written is no error."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, suffix=".tmp")
            with os.fdopen(handle, "wb") as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(self.memory)))
            Path(temporary).replace(self._path)

    def _read(self, root: str) -> Memory:
        try:
            memory = msgspec.json.decode(self._path.read_bytes(), type=Memory)
        except (OSError, msgspec.MsgspecError):
            return Memory(root=root)
        return memory if memory.root == root else Memory(root=root)


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
