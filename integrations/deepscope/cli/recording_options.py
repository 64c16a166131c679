"""The options of a recording: those of `deepscope run` and `attach`, and `[tool.deepscope]` in pyproject.toml.

The command line has those that change from run to run, the file of a project the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import click
import msgspec

from deepscope.capture.options import BUILT_IN_CODE, OPTIONS, SCHEDULE_NAMES, RecordingOptions, checked_options
from deepscope.capture.topics import TOPICS
from deepscope.cli.options import Duration
from deepscope.cli.output import Function, with_options
from deepscope.errors import OptionError, SettingsError
from deepscope.printable import printable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def _declared(name: str, word: str = "", **settings: Any) -> Callable[[Function], Function]:
    """An option as it is declared; what is not given is left to the recording's own default."""
    default = OPTIONS[name].default
    default_text = "" if default is None or default is False else f"  [default: {default}]"
    return click.option(f"--{word or name}", name, help=OPTIONS[name].metadata["what"] + default_text, **settings)


asked_options = with_options(
    _declared("topics", metavar="TOPICS"),
    _declared("warmup", type=click.IntRange(0), metavar="N"),
    _declared("time", type=Duration(), metavar="TIME"),
    _declared("ranks", "rank", multiple=True, metavar="RANKS"),
)
"""Adds `--topics --warmup --time --rank`, which `run` and `attach` have in common."""

run_options = with_options(
    _declared("wait", type=click.IntRange(0), metavar="N"),
    _declared("active", type=click.IntRange(1), metavar="N"),
    _declared("after", type=Duration(zero=True), metavar="TIME"),
    _declared("audit", is_flag=True, default=None),
)
"""Adds the options of `run` alone; the command gets them by the names of `RecordingOptions`."""


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave, as keywords for whatever records."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


COUNTED = frozenset({"skip_first", "repeat"})
"""Keys of recordings that count steps; any other recording takes no notice of them."""
_OF_ONE_RUN = frozenset(SCHEDULE_NAMES) - BUILT_IN_CODE - COUNTED
"""They say which steps of a run are recorded: on the command line alone."""
_NO_KEYS = BUILT_IN_CODE | _OF_ONE_RUN

SETTINGS: dict[str, Any] = {
    **{name: kind for name, kind in get_type_hints(RecordingOptions).items() if name not in _NO_KEYS},
    "root": str,
    "filename": str,
    "control": str,
}
"""The keys of the table, and the type of each one's value."""


def project_settings(program: str, *, is_module: bool) -> dict[str, Any]:
    """The table of the project that the program, or with `is_module` the current folder, lies in; {} without one.

    Raises:
        SettingsError: the file is no TOML; the table has a key that does not exist, or a value that cannot be used.
    """
    from deepscope.capture.lines.recorded_code import root_above  # imports torch

    folder = Path.cwd() if is_module else Path(program).resolve().parent
    path = root_above(folder) / "pyproject.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("deepscope", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise SettingsError(f"{path}: cannot be read: {printable(str(error))}") from None
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: [tool.deepscope] is {table!r}; it must be a table")
    settings = {name: _checked(path, name, value) for name, value in table.items()}
    if "root" in settings:
        settings["root"] = str(path.parent / settings["root"])
    try:
        checked_options({name: value for name, value in settings.items() if name not in {"filename", "control"}})
    except OptionError as error:
        raise SettingsError(f"{path}: [tool.deepscope] {error.message(_as_toml)}") from None
    return settings


def with_settings(given: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The options of the command line and, where these say nothing, those of the project."""
    chosen = {topic.option for topic in TOPICS.values()} if "topics" in given else set()
    return {name: value for name, value in settings.items() if name not in chosen} | given


def _checked(path: Path, name: str, value: object) -> Any:
    if name in _OF_ONE_RUN:
        raise SettingsError(f"{path}: [tool.deepscope] {name}: belongs on the command line, as --{name}")
    if name not in SETTINGS:
        raise SettingsError(f"{path}: [tool.deepscope] {name}: no such key; there are: {', '.join(sorted(SETTINGS))}")
    try:
        return msgspec.convert(value, SETTINGS[name])
    except msgspec.ValidationError as error:
        raise SettingsError(f"{path}: [tool.deepscope] {_as_toml(name, value)}: {error}") from None


def _as_toml(name: str, value: object) -> str:
    return f"{name} = {value!r}"
