"""What can be chosen about a recording, checked once, where it is chosen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import isinf
from pathlib import Path
from typing import Any, TypedDict

from deepscope.capture.notices import warn
from deepscope.capture.topics import TOPICS, options_of, topic_names
from deepscope.errors import OptionError
from deepscope.trace.format.configuration import Configuration, option

SOURCE_CHOICES = ("text", "hash", "none")
"""What of the user's files goes into a trace."""

LIBRARY_CHOICES = ("hot", "off")
"""Whether lines of installed packages are recorded."""

COUNTER_CHOICES = ("window", "run", "off")
"""When the machine's counters are sampled: in windows, from start to stop, or never."""


class OptionKeywords(TypedDict, total=False):
    """The fields of `RecordingOptions` for type checkers; a test holds the two together."""

    wait: int
    warmup: float
    active: int
    repeat: int
    skip_first: int
    time: float | None
    after: float
    schedule: Callable[[int], Any] | None
    activities: Iterable[Any] | None
    lines: bool
    modules: bool
    compiled_lines: bool
    libraries: str
    include: Collection[str]
    exclude: Collection[str]
    root: str | Path | None
    source: str
    record_shapes: bool
    profile_memory: bool
    memory_snapshot: bool
    max_slowdown: float
    max_entries: int
    with_stack: bool
    with_flops: bool
    with_modules: bool
    sync_events: bool
    align_time: bool
    counters: str | bool
    counter_interval: float
    topics: Collection[str] | str | None
    audit: bool
    all_threads: bool | None
    ranks: Collection[int | str] | int | str | None
    on_trace_ready: Callable[[Path], Any] | None
    keep_last: int | None
    max_total_size: int | str | None
    compress: bool
    experimental_config: Any
    execution_trace_observer: Any
    acc_events: bool


@dataclass(frozen=True, kw_only=True)
class RecordingOptions(Configuration):
    """Options of a recording; `deepscope.profile`, `callback`, `DeepProfiler` and `deepscope run` take them all.

    Raises `OptionError`, which names the option and the values it takes.
    """

    topics: Collection[str] | str | None = option(
        None,
        "All that is recorded: names of topics or of a set; by default what the other options say.",
    )
    schedule: Callable[[int], Any] | None = option(
        None,
        "A function of the step number as `torch.profiler.schedule` makes it, in place of the five numbers.",
        chooses_steps=True,
        is_object=True,
    )
    activities: Iterable[Any] | None = option(
        None,
        "`torch.profiler.ProfilerActivity`s; by default all that this build of torch supports.",
        is_object=True,
    )
    include: Collection[str] = option(
        (),
        "Globs of files or names of packages that count as user code though they lie outside the project.",
    )
    exclude: Collection[str] = option((), "Globs of files that do not count as user code.")
    root: str | Path | None = option(None, "The project's root; None to look for it upward from the running script.")
    max_slowdown: float = option(
        2.0,
        "How many times as long as without lines a window may take before detail is lowered; infinity for no limit.",
    )
    ranks: Collection[int | str] | int | str | None = option(
        None,
        'The ranks that record: numbers, ranges ("0,8-15"), or "hosts" for the first one of each host; by default all.',
    )
    on_trace_ready: Callable[[Path], Any] | None = option(
        None,
        "Called with each file once it is complete, on the thread that wrote it.",
        is_object=True,
    )
    keep_last: int | None = option(
        None,
        "How many windows stay in the trace folder; older ones of DeepScope's own are removed. By default all.",
    )
    max_total_size: int | str | None = option(
        None,
        'What DeepScope\'s traces in the folder may take, in bytes or as "20 GB"; the oldest are removed.',
    )
    compress: bool = option(True, "Write `.json.gz` rather than `.json`.")
    experimental_config: Any = option(
        None,
        "torch's `_ExperimentalConfig`; None for DeepScope's own.",
        is_object=True,
    )
    execution_trace_observer: Any = option(
        None,
        "torch's observer of execution traces, as its profiler takes it.",
        is_object=True,
    )
    acc_events: bool = option(
        False,
        "An option of torch's profiler, without effect: each window writes its own file either way.",
        is_object=True,
    )

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0), ("skip_first", 0)):
            _check_count(name, getattr(self, name), least)
        self._check_time()
        _check_count("max_entries", self.max_entries, 1_000)
        slowdown: object = self.max_slowdown
        if isinstance(slowdown, bool) or not isinstance(slowdown, int | float) or not slowdown > 1:
            raise OptionError("max_slowdown", self.max_slowdown, "must be a number above 1, such as 2")
        if self.schedule is not None and not callable(self.schedule):
            raise OptionError(
                "schedule", self.schedule, "must be a function of the step, as torch.profiler.schedule() returns"
            )
        _check_choice("source", self.source, SOURCE_CHOICES)
        _check_choice("libraries", self.libraries, LIBRARY_CHOICES)
        self._check_counters()
        for name in ("include", "exclude"):
            _freeze_words(self, name)
        if self.ranks is not None:
            object.__setattr__(self, "ranks", checked_ranks(self.ranks))
        if self.on_trace_ready is not None and not callable(self.on_trace_ready):
            raise OptionError("on_trace_ready", self.on_trace_ready, "must take the path of a trace")
        if self.keep_last is not None:
            _check_count("keep_last", self.keep_last, 1)
        if self.max_total_size is not None:
            object.__setattr__(self, "max_total_size", _bytes(self.max_total_size))
        if self.root is not None and not Path(self.root).is_dir():
            raise OptionError("root", str(self.root), "must be an existing folder")
        if self.topics is not None:
            self._choose_topics()
        if self.with_flops:
            object.__setattr__(self, "record_shapes", True)
        if self.activities is not None:
            object.__setattr__(self, "activities", tuple(self.activities))

    def _check_time(self) -> None:
        if self.time is None:
            if self.after != _DEFAULTS["after"]:
                raise OptionError("after", self.after, "goes with a time to record")
            return
        for name, least in (("time", 1e-3), ("after", 0)):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e9:
                raise OptionError(name, value, "must be seconds")
        for name in ("wait", "active", "repeat", "skip_first", "schedule"):
            if getattr(self, name) != _DEFAULTS[name]:
                raise OptionError(name, getattr(self, name), "counts steps, and does not go with a time to record")

    def _check_counters(self) -> None:
        given: object = self.counters
        if isinstance(given, bool):
            object.__setattr__(self, "counters", _COUNTER_WORDS[given])
        _check_choice("counters", self.counters, COUNTER_CHOICES)
        interval: object = self.counter_interval
        if isinstance(interval, bool) or not isinstance(interval, int | float) or not 0.01 <= interval <= 3600:
            raise OptionError("counter_interval", interval, "must be seconds, 0.01 to 3600")

    def _choose_topics(self) -> None:
        """Of other options only those that are not at their default can be known here to have been given."""
        chosen = topic_names(self.topics, _DEFAULTS)
        given = {name: value for name in OPTIONS if (value := getattr(self, name)) != _DEFAULTS[name]}
        for name, value in options_of(chosen, given).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "topics", chosen)

    @property
    def configuration(self) -> Configuration:
        """The part that a trace tells."""
        values = {field.name: getattr(self, field.name) for field in fields(Configuration)}
        return Configuration(**values | {"max_slowdown": None if isinf(self.max_slowdown) else self.max_slowdown})

    @property
    def rank_choice(self) -> RankChoice:
        """`ranks`, understood."""
        return None if self.ranks is None else checked_ranks(self.ranks)

    @property
    def max_total_bytes(self) -> int | None:
        """`max_total_size` as a number."""
        return None if self.max_total_size is None else int(self.max_total_size)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(name, value, f"must be one of {', '.join(map(repr, choices))}")


_COUNTER_WORDS = {True: "run", False: "off"}


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(name, value, f"must be an integer, {least} or more")


def _bytes(value: object) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", str(value), re.IGNORECASE)
    if isinstance(value, bool) or found is None or not float(found[1]):
        raise OptionError("max_total_size", value, 'must be bytes, such as 20_000_000_000, "20 GB" or "20 GiB"')
    unit = 1024 if found[3] else 1000
    return int(float(found[1]) * unit ** " KMGT".index(found[2].upper() or " "))


def _freeze_words(options: RecordingOptions, name: str) -> None:
    value = getattr(options, name)
    words = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(word, str) and word for word in words):
        raise OptionError(name, value, "must be globs, such as ('**/models/*.py',)")
    object.__setattr__(options, name, words)


OPTIONS = {field.name: field for field in fields(RecordingOptions)}
"""The declarations, by name; `metadata` says what each one means."""
OPTION_NAMES = frozenset(OPTIONS)
_DEFAULTS = {name: field.default for name, field in OPTIONS.items()}
SCHEDULE_NAMES = tuple(name for name, field in OPTIONS.items() if field.metadata["chooses_steps"])
"""The options that choose steps."""
BUILT_IN_CODE = frozenset(name for name, field in OPTIONS.items() if field.metadata["is_object"])
"""Options that take a Python object; all others can be written as a word."""


def markdown() -> Iterator[str]:
    """The lines of the table in docs/recording.md, which tells of steps, topics and Python objects elsewhere."""
    elsewhere = {*SCHEDULE_NAMES, *BUILT_IN_CODE, *(topic.option for topic in TOPICS.values())}
    yield "| option | meaning |"
    yield "|---|---|"
    for name in (name for name in OPTIONS if name not in elsewhere):
        field = OPTIONS[name]
        yield f"| `{name}={field.default!r}` | {field.metadata['what']} |"


def checked_options(given: Mapping[str, Any]) -> RecordingOptions:
    """The options that were given as keywords. Raises `OptionError` for one that does not exist, too."""
    unknown = sorted(given.keys() - OPTION_NAMES)
    if unknown:
        problem = f"no such option; there are {', '.join(sorted(OPTION_NAMES))}"
        raise OptionError(unknown[0], given[unknown[0]], problem)
    if isinstance(given.get("counters"), bool):
        given = {**given, "counters": _COUNTER_WORDS[given["counters"]]}
    if given.get("topics") is not None:
        return RecordingOptions(**{**given, **options_of(topic_names(given["topics"], _DEFAULTS), given)})
    return RecordingOptions(**given)


HOSTS = "hosts"
"""The first rank of each host."""

RankChoice = frozenset[int] | str | None
"""The numbers; `HOSTS`; None for all."""

OFF_VARIABLE = "DEEPSCOPE_OFF"
"""Where the environment has it, no rank records: a program that is only to be timed runs as without DeepScope in it."""

_MOST_RANKS = 1 << 20
"""Ranks that may be named."""
_RANK_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def checked_ranks(given: Collection[int | str] | int | str) -> RankChoice:
    """What was given, understood: 3, [0, 8], "0,8-15", "hosts", "all".

    Raises `OptionError` for anything else.
    """
    items: Collection[object] = (given,) if isinstance(given, str) or not isinstance(given, Collection) else given
    words = [item.strip() for item in items if isinstance(item, str)]
    if len(words) == len(items) == 1 and words[0] in (HOSTS, "all"):
        return HOSTS if words[0] == HOSTS else None
    chosen: set[int] = set()
    for part in (part for item in items for part in (item.split(",") if isinstance(item, str) else [item])):
        numbers = _rank_numbers(part)
        if numbers is None:
            raise OptionError("ranks", given, 'must be rank numbers, 0 or more, such as [0, 8] or "0,8-15", or "hosts"')
        if len(chosen) + len(numbers) > _MOST_RANKS:
            raise OptionError("ranks", given, f"may name {_MOST_RANKS:,} ranks at most")
        chosen.update(numbers)
    return frozenset(chosen)


def is_chosen(choice: RankChoice, rank: int, local_rank: int) -> bool:
    """Whether a rank records; `local_rank` counts on its host."""
    if os.environ.get(OFF_VARIABLE):
        return False
    if choice is None:
        return True
    return local_rank == 0 if isinstance(choice, str) else rank in choice


def first_rank(choice: RankChoice) -> int:
    """The lowest of the ranks that record."""
    return 0 if choice is None or isinstance(choice, str) else min(choice, default=0)


def warn_if_nobody(choice: RankChoice, rank: int, world_size: int) -> None:
    """Tell on rank 0 that none of the ranks that there are records."""
    if rank == 0 and first_rank(choice) >= world_size > 1:
        warn(f"nothing is recorded: ranks= names none of the {world_size} ranks that there are")


def _rank_numbers(part: object) -> range | None:
    """The ranks that a number, or a word such as "3" or "8-15", stands for; None for what stands for none."""
    if isinstance(part, int) and not isinstance(part, bool) and part >= 0:
        return range(part, part + 1)
    found = _RANK_RANGE.fullmatch(part.strip()) if isinstance(part, str) else None
    return None if found is None else range(int(found[1]), int(found[2] or found[1]) + 1) or None
