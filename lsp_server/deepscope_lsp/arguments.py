"""What each command takes: one object, checked before anything is done."""

from __future__ import annotations

from typing import Annotated

import msgspec

from deepscope.report.call_paths import Depth

Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Line = Annotated[int, msgspec.Meta(ge=1)]
Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Where(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which workspace folder; without it the first that shows a profile."""

    root: str | None = None
    """URI of a workspace folder."""


class HotLinesArgument(Where, kw_only=True):
    """`deepscope.hotLines`."""

    limit: Count = 50
    uri: str | None = None
    """Only the lines of this open document."""


class CallPathsArgument(Where, kw_only=True, rename="camel"):
    """`deepscope.callPaths`; paths below `minShare` are left out."""

    min_share: Ratio = 0.001
    depth: Depth = "line"
    """How far below the lines."""


class HotModulesArgument(Where, kw_only=True):
    """`deepscope.modules`."""

    limit: Count = 50


class ResolveArgument(Where, kw_only=True):
    """`deepscope.resolvePath`; `path` as a trace or a dashboard names it."""

    path: str
    line: Line = 1


class RecordedPlaceArgument(Where, kw_only=True):
    """`deepscope.locate`: a line as recorded."""

    file: str
    line: Line


class LinePathsArgument(RecordedPlaceArgument, kw_only=True):
    """`deepscope.linePaths`: the same."""

    depth: Depth = "line"
    """How far below the lines."""


class MapFolderArgument(Where, kw_only=True):
    """`deepscope.mapFolder`: a file as recorded, and the folder on this machine in which it is somewhere."""

    file: str
    folder: str


class RecordedTextArgument(Where, kw_only=True):
    """`deepscope.recordedText`."""

    file: str


class TextPlaceArgument(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`deepscope.recordedLine`: a line of an open document as it is now."""

    uri: str
    line: Line


class ListArgument(Where, kw_only=True):
    """`deepscope.listTraces` and `listRuns`."""

    limit: Count = 200


class PathArgument(Where, kw_only=True):
    """`deepscope.selectTrace` and `setBaseline`."""

    path: str | None = None
    """A trace, a folder or an fsspec URL; null for the newest (or, for the baseline, what is shown now)."""
    run: bool = False
    """Not the trace alone, but the run that it is of, with all its ranks."""


class PlaceArgument(Where, kw_only=True):
    """`deepscope.callers` and `showCallers`."""

    file: str | None = None
    """As recorded."""
    uri: str | None = None
    """An open document, in place of `file`; `line` is then a line of its text now."""
    line: Line


class HideArgument(Where, kw_only=True):
    """`deepscope.hideFinding`; without `file` everywhere, without `line` in the whole file."""

    code: str
    file: str | None = None
    line: Line | None = None
    """As recorded."""


class TryArgument(Where, kw_only=True):
    """`deepscope.tryCommand` and `showTryCommand`."""

    code: str
    """Of the finding."""


class UriArgument(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`deepscope.annotations`."""

    uri: str
