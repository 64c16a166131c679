"""What an editor tells a dashboard that it started: which traces there are, and which run it shows itself.

Each line is a `ViewRequest` as JSON; it takes the place of the one before, and `shown` is told when it has. The end of
the lines is the editor's end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import msgspec

from deepscope.dashboard.library import Library
from deepscope.dashboard.server import Pages

_LOG = logging.getLogger(__name__)


class ViewRequest(msgspec.Struct, frozen=True):
    """What is to be shown."""

    paths: list[str]
    """Traces, folders or fsspec URLs."""
    first: str = ""
    """A trace of the run that is shown where none is chosen."""
    hosts: list[str] = []
    """Names, beside this machine's own, under which the editor's proxy is reached."""


def follow_line(line: bytes, library: Library, pages: Pages) -> None:
    """Takes in one line; one of another shape changes nothing."""
    try:
        shown = msgspec.json.decode(line, type=ViewRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        if line.strip():
            _LOG.warning("not understood: %s", error)
        return
    library.show(shown.paths, shown.first)
    pages.admit(shown.hosts)


def follow(
    lines: Iterable[bytes], library: Library, pages: Pages, *, shown: Callable[[], None], ended: Callable[[], None]
) -> None:
    """Takes in lines until they end."""
    try:
        for line in lines:
            follow_line(line, library, pages)
            shown()
    finally:
        ended()
