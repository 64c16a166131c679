"""What the commands that read a trace have in common: their options, and loading with a bar."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from deepscope.cli.entry import SCHEDULER_VARIABLE
from deepscope.cli.output import Bar, Function, warn, with_options
from deepscope.processes import ONE_THREAD
from deepscope.records import PHASES, View
from deepscope.report.filters import Filters
from deepscope.store import Profile, load_profile
from deepscope.store.load import load_repeats, load_selection
from deepscope.store.selection import SKIPPED, TraceSelection, newest_folder

if TYPE_CHECKING:
    FloatType = click.ParamType[float]
else:
    FloatType = click.ParamType  # before click 8.2 it takes no type


_UNITS = {
    "": 1.0,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}
_DURATION = re.compile(r"\s*(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*([a-zµμ]*)\s*", re.ASCII)


class Duration(FloatType):
    """`60`, `90s`, `1.5m`, `2h`, `500ms`, `100us` as seconds; no time at all only where `zero` allows it."""

    name = "time"

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _DURATION.fullmatch(str(value).lower())
        if found is None or found[2] not in _UNITS:
            self.fail(f"{value!r} is no time; it takes a number with ns, us, ms, s, m or h: 90s, 1.5ms", param, ctx)
        seconds = float(found[1]) * _UNITS[found[2]]
        if not seconds and not self._zero:
            self.fail(f"{value!r} is no time above 0", param, ctx)
        return seconds


FOLDERS = ("deepscope_logs", "lightning_logs", "runs")
"""Where a run is looked for when no path is given."""


_READING = {
    "rank": click.option("--rank", type=click.IntRange(0), help="Only this rank; all are summed up otherwise."),
    "step": click.option("--step", type=int, help="Only this step (the N of ProfilerStep#N)."),
    "stage": click.option("--stage", help="Another stage of the run: validate, test, predict, sanity_check."),
    "peaks": click.option(
        "--peaks",
        default="",
        metavar="PEAKS",
        help="What the device can do at best, in TFLOP/s and TB/s: 'fp32=67,bf16=989,bandwidth=3.35'.",
    ),
    "partial": click.option("--partial", is_flag=True, help="Of a trace that ends early, read what is whole."),
}


def reading_options(*names: str) -> Callable[[Function], Function]:
    """Adds those that are named of `--rank --step --stage --peaks --partial`; all of them without a name."""
    return with_options(*(_READING[name] for name in names or _READING))


filter_options = with_options(
    click.option(
        "--include", metavar="GLOB", multiple=True, help="Only rows with such a name, path or type; may come again."
    ),
    click.option(
        "--exclude", metavar="GLOB", multiple=True, help="No rows with such a name, path or type; may come again."
    ),
    click.option("--phase", default="", metavar="PHASE", help=f"Only this phase: {', '.join(PHASES)}."),
    click.option("--module", default="", metavar="GLOB", help="Only modules of such a path, and what is in them."),
    click.option(
        "--min-time", type=Duration(zero=True), metavar="TIME", help="Only rows of at least this: 100us, 1.5ms, 2s."
    ),
)
"""Adds `--include --exclude --phase --module --min-time`; `filters_of` makes the row filters of them."""


def scheduler_address() -> str:
    """The Dask cluster that reads ranks; "" for this machine."""
    return os.environ.get(SCHEDULER_VARIABLE, "")


def filters_of(include: Sequence[str], exclude: Sequence[str], min_time: float | None) -> Filters:
    """The filters of rows that the options ask for."""
    return Filters(tuple(include), tuple(exclude), round((min_time or 0) * 1e9))


def use_one_thread() -> None:
    """Has NumPy start no threads when it is imported, unless the environment says so."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


def load(path: str | None, *, has_notes: bool = False, **options: Any) -> Profile:
    """Loads with a bar on the terminal; without a path the newest run of `FOLDERS`.

    What was skipped is written to standard error, but for a form of the profile that has notes of its own. `options`
    are those of `load_profile`.
    """
    use_one_thread()
    with Bar() as progress:
        folder = newest_folder(FOLDERS) if path is None else path
        profile = load_profile(folder, progress=progress, **options)
    if not has_notes:
        warn(_skipped(profile))
    return profile


def load_all(path: str, *, rank: int | None, step: int | None, stage: str | None, partial: bool) -> list[Profile]:
    """The newest run at a path with its repeats there, each with a bar on the terminal."""
    view = View(step=step)
    use_one_thread()

    def loaded(selection: TraceSelection) -> Profile:
        with Bar() as progress:
            return load_selection(selection, view, rank=rank, stage=stage, progress=progress, partial=partial)

    profiles = load_repeats(path, loaded, rank=rank, stage=stage)
    warn(_skipped(profiles[0]))
    return profiles


def _skipped(profile: Profile) -> list[str]:
    return [one for one in profile.trace.warnings if one.startswith(SKIPPED)]
