"""What the timeline page asks for."""

from __future__ import annotations

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from deepscope.dashboard.timeline.answers import (
    Durations,
    Matches,
    Selection,
    SliceDetails,
    SliceKind,
    Timeline,
    Window,
)
from deepscope.errors import OptionError


class Stretch(Choice, kw_only=True, frozen=True):
    """A stretch of time on some tracks."""

    begin: int
    """In nanoseconds from the timeline's begin."""
    end: int
    tracks: str = ""
    """Their numbers with commas between; "" for all, "none" for none."""


class ViewedStretch(Stretch, kw_only=True, frozen=True):
    """What is seen of a timeline."""

    pixels: int
    """How wide it is drawn."""


class OneSlice(Choice, kw_only=True, frozen=True):
    """One slice."""

    slice: int


class TextSearch(Choice, kw_only=True, frozen=True):
    """Slices whose names hold a text."""

    text: str
    from_ns: int = 0
    """Those are told that start then or later."""
    limit: int = 100
    kinds: str = ""
    """With commas between; "" for all."""


class LineSearch(Choice, kw_only=True, frozen=True):
    """Slices that belong to a line of code."""

    file: str
    """As recorded."""
    line: int
    from_ns: int = 0
    limit: int = 100


class DurationsOf(Choice, kw_only=True, frozen=True):
    """The slices of a kind that have a name."""

    name: str
    kind: SliceKind


def timeline(library: Library, question: Choice) -> Timeline:
    """What there is to see of the chosen rank's trace, else of the first's."""
    return library.timeline(question).head()


def timeline_window(library: Library, question: ViewedStretch) -> Window:
    """What a stretch of time shows."""
    return library.timeline(question).window(question.begin, question.end, question.pixels, _tracks(question.tracks))


def timeline_slice(library: Library, question: OneSlice) -> SliceDetails:
    """All that is known of one slice."""
    return library.timeline(question).details(question.slice)


def timeline_selection(library: Library, question: Stretch) -> Selection:
    """The sums of a stretch of time."""
    return library.timeline(question).selection(question.begin, question.end, _tracks(question.tracks))


def timeline_search(library: Library, question: TextSearch) -> Matches:
    """The slices whose names hold a text."""
    kinds = question.kinds.split(",") if question.kinds else None
    return library.timeline(question).search(question.text, from_ns=question.from_ns, limit=question.limit, kinds=kinds)


def timeline_line(library: Library, question: LineSearch) -> Matches:
    """The slices that belong to a line of code."""
    return library.timeline(question).at_line(
        question.file, question.line, from_ns=question.from_ns, limit=question.limit
    )


def timeline_durations(library: Library, question: DurationsOf) -> Durations:
    """How long the slices of one name are."""
    return library.timeline(question).durations(question.name, question.kind)


def _tracks(words: str) -> tuple[int, ...] | None:
    if words in {"", "none"}:
        return () if words else None
    try:
        return tuple(int(word) for word in words.split(","))
    except ValueError:
        raise OptionError("tracks", words[:100], "takes numbers with commas between, or none") from None
