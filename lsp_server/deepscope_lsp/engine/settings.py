"""Settings: each with its type and default; a bad value is named once and the default used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from deepscope.analysis.peaks import given_peaks
from deepscope.errors import OptionError

Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]

DEFAULT_TRACES = ("deepscope_logs", "lightning_logs", "runs", "logs", "log", "tb_logs", "deepscope_demo")


DEFAULT_WATCH_SECONDS = 2.0
MAX_QUIET_SECONDS = 0.5
MIN_POLL_SECONDS = 0.05


class TraceChoice(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which trace is shown in place of the newest, and which part of it."""

    trace: str = ""
    stage: str | None = None
    rank: int | None = None
    step: int | None = None
    partial: bool = False


class Settings(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """All of `deepscope.*`; docs/lsp.md describes each."""

    traces: tuple[str, ...] = DEFAULT_TRACES
    show: TraceChoice = TraceChoice()
    peaks: str = ""
    watch_seconds: Seconds = DEFAULT_WATCH_SECONDS
    threshold: Ratio = 0.01
    inlay_hints: Literal["off", "hot", "all"] = "hot"
    changed_lines: Literal["mark", "hide"] = "mark"
    code_lens: bool = True
    hover: bool = True
    diagnostics: Literal["off", "hotLines", "findings", "all"] = "all"
    hide: tuple[str, ...] = ()
    highlights: bool = False
    path_mappings: dict[str, str] = {}

    @property
    def is_watching(self) -> bool:
        """Whether new traces are looked for."""
        return self.watch_seconds > 0

    @property
    def poll_seconds(self) -> float:
        """The pause between two looks."""
        return max(MIN_POLL_SECONDS, self.watch_seconds or DEFAULT_WATCH_SECONDS)

    @property
    def quiet_seconds(self) -> float:
        """A new trace is read when nothing was written for so long."""
        return min(MAX_QUIET_SECONDS, self.poll_seconds / 4)


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}


def read_settings(*layers: object) -> tuple[Settings, list[str]]:
    """Settings from what an editor sends, and a sentence for each value that cannot be used; later layers win.

    A layer has the names as they are, after `deepscope.`, or below a `deepscope` key. Unknown names are left alone: an
    editor has settings of its own. null means unset.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for layer in layers:
        if layer is not None and not isinstance(layer, Mapping):
            problems.append(f"deepscope: {_shown(layer)} is no object of settings; the defaults are used")
            continue
        for name, value in _flat(layer or {}):
            field = _FIELDS.get(name)
            if field is None or value is None:
                continue
            try:
                values[field.name] = _checked(field.name, msgspec.convert(value, field.type))
            except (msgspec.ValidationError, OptionError) as error:
                values.pop(field.name, None)
                problem = error.problem if isinstance(error, OptionError) else str(error)
                problems.append(f"deepscope.{name}: {_shown(value)} cannot be used ({problem}); the default is")
    return Settings(**values), problems


def in_settings(option: str, value: object) -> str:
    """An option of the library as an editor's user sets it: `deepscope.show.rank 3`."""
    name = f"deepscope.show.{option}" if option in TraceChoice.__struct_fields__ else f"deepscope.{option}"
    return name if value is True else f"{name} {value}"


def _checked(name: str, value: Any) -> Any:
    """The value; raises OptionError where its type is right and it still cannot be used."""
    if name == "peaks":
        given_peaks(value)
    return value


def _flat(given: Mapping[str, Any]) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in given.items():
        name = str(key).removeprefix("deepscope.")
        if name == "deepscope" and isinstance(value, Mapping):
            pairs.extend(_flat(value))
        else:
            pairs.append((name, value))
    return pairs


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
