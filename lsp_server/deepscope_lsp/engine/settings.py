"""Settings: each with its type and default; a bad value is named once and the default used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from deepscope.analysis.peaks import given_peaks
from deepscope.errors import OptionError

Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0.05, le=3600)]

DEFAULT_TRACES = ("deepscope_logs", "lightning_logs", "runs", "logs", "log", "tb_logs", "deepscope_demo")


class Settings(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """All of `deepscope.*`; docs/lsp.md describes each."""

    traces: tuple[str, ...] = DEFAULT_TRACES
    trace: str = ""
    stage: str | None = None
    rank: int | None = None
    step: int | None = None
    partial: bool = False
    peaks: str = ""
    watch_enabled: bool = True
    watch_poll_seconds: Seconds = 2.0
    watch_quiet_seconds: Seconds = 0.5
    threshold: Ratio = 0.01
    inlay_hints_detail: Literal["off", "hot", "all"] = "hot"
    inlay_hints_baseline: bool = True
    changed_lines: Literal["mark", "hide"] = "mark"
    code_lens_enabled: bool = True
    hover_enabled: bool = True
    diagnostics_hot_lines: bool = True
    diagnostics_findings: bool = True
    diagnostics_hint_share: Ratio = 0.05
    diagnostics_information_share: Ratio = 0.0
    diagnostics_warning_share: Ratio = 0.0
    diagnostics_hide: tuple[str, ...] = ()
    highlights_enabled: bool = False
    path_mappings: dict[str, str] = {}


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
_SECTIONS = ("watch", "inlayHints", "codeLens", "hover", "diagnostics", "highlights")


def read_settings(*layers: object) -> tuple[Settings, list[str]]:
    """Settings from what an editor sends, and a sentence for each value that cannot be used; later layers win.

    A layer has nested objects (`{"inlayHints": {"detail": "all"}}`), dotted names (`{"inlayHints.detail": "all"}`), or
    both below a `deepscope` key. Unknown names are left alone: an editor has settings of its own. null means unset.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for layer in layers:
        if layer is not None and not isinstance(layer, Mapping):
            problems.append(f"deepscope: {_shown(layer)} is no object of settings; the defaults are used")
            continue
        for name, value in _flat(layer or {}):
            field = _FIELDS.get(_joined(name))
            if name in _SECTIONS and value is not None:
                problems.append(f"deepscope.{name}: {_shown(value)} is no object of settings; the defaults are used")
            if field is None or value is None:
                continue
            try:
                values[field.name] = _checked(field.name, msgspec.convert(value, field.type))
            except (msgspec.ValidationError, OptionError) as error:
                values.pop(field.name, None)
                problem = error.problem if isinstance(error, OptionError) else str(error)
                problems.append(f"deepscope.{name}: {_shown(value)} cannot be used ({problem}); the default is")
    return Settings(**values), problems


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
        elif name in _SECTIONS and isinstance(value, Mapping):
            pairs.extend((f"{name}.{inner}", entry) for inner, entry in value.items())
        else:
            pairs.append((name, value))
    return pairs


def _joined(name: str) -> str:
    head, *rest = name.split(".")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
