"""Why a number may not belong to the text beside it."""

from __future__ import annotations

from enum import Enum


class Mark(Enum):
    """Why a number may not be the line's own; the value is the word that stands beside it."""

    NONE = ""
    EDITED = "edited"
    """The line was changed since it was measured."""
    UNVERIFIED = "file newer than trace"
    """The trace has no text of the file, and the file was written after it."""
    OTHER_TEXT = "file changed since"
    """The trace has no text of the file, and its hash is not that of the text now."""
