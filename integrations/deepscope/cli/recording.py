"""The options of a recording on the command line: the same set that `deepscope.profile` takes as keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from deepscope.cli.durations import Duration, StepsOrDuration

__all__ = ["BUILT_IN_CODE", "given_options", "recording_options"]

Command = TypeVar("Command", bound=Callable[..., Any])

BUILT_IN_CODE = frozenset(
    {"schedule", "activities", "on_trace_ready", "experimental_config", "execution_trace_observer", "acc_events"}
)
"""Options that take a Python object; all others are here."""

_OPTIONS = (
    click.option(
        "--topics", metavar="TOPICS", help="What is recorded: names with commas between them, or a set; listed below."
    ),
    click.option("--wait", type=click.IntRange(0), help="Steps that pass unrecorded.  [default: 1]"),
    click.option(
        "--warmup",
        type=StepsOrDuration(),
        metavar="N",
        help="Steps of torch's warm-up; with --time the time before it: 120, 90s, 2m.  [default: 1]",
    ),
    click.option("--active", type=click.IntRange(1), help="Steps that are recorded.  [default: 3]"),
    click.option("--repeat", type=click.IntRange(0), help="Cycles of these; 0 for as many as fit.  [default: 1]"),
    click.option("--time", type=Duration(), metavar="TIME", help="How long to record, in place of steps: 60, 90s, 2m."),
    click.option("--skip-first", type=click.IntRange(0), help="Steps before the first cycle.  [default: 0]"),
    click.option(
        "--libraries",
        type=click.Choice(["hot", "off"]),
        help="hot: lines of the installed packages whose modules run, too.  [default: off]",
    ),
    click.option("--source", type=click.Choice(["text", "hash", "none"]), help="What of your files a trace has."),
    click.option("--root", type=click.Path(exists=True, file_okay=False), help="The root of your project."),
    click.option("--include", multiple=True, metavar="GLOB", help="Files or packages that count as your code, too."),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Files that do not count as your code."),
    click.option("--lines/--no-lines", default=None, help="Record the lines of your code."),
    click.option("--modules/--no-modules", default=None, help="Record the calls of modules."),
    click.option(
        "--compiled-lines/--no-compiled-lines", default=None, help="Have torch.compile keep its kernels' source lines."
    ),
    click.option("--shapes", "record_shapes", is_flag=True, default=None, help="Record shapes; FLOPs follow."),
    click.option("--memory", "profile_memory", is_flag=True, default=None, help="Record allocations, too."),
    click.option("--flops", "with_flops", is_flag=True, default=None, help="Count FLOPs; records shapes."),
    click.option("--with-stack", is_flag=True, default=None, help="torch's own stacks, too."),
    click.option("--with-modules", is_flag=True, default=None, help="torch's own module names, too."),
    click.option("--sync", "sync_events", is_flag=True, default=None, help="CUDA's waits as events, too."),
    click.option(
        "--counters",
        type=click.Choice(["window", "run", "off"]),
        help="CPU, memory, disks, network, GPUs: sampled in windows, from start to end, or not.  [default: window]",
    ),
    click.option("--counter-interval", type=float, metavar="SECONDS", help="From sample to sample.  [default: 0.1]"),
    click.option("--align-time", is_flag=True, default=None, help="Times are Unix time by the host's clock."),
    click.option("--all-threads/--no-all-threads", default=None, help="Record threads that the program starts."),
    click.option("--ranks", multiple=True, metavar="RANKS", help="Which record: 0,8-15, or hosts.  [default: all]"),
    click.option("--max-slowdown", type=float, help="Times as slow as without lines, at most.  [default: 2]"),
    click.option("--max-entries", type=int, help="Runs of lines that a window may record.  [default: 250,000]"),
    click.option("--keep-last", type=int, metavar="N", help="Keep the newest N windows in the folder."),
    click.option("--max-total-size", metavar="SIZE", help='What the traces may take, such as "20 GB".'),
    click.option("--compress/--no-compress", default=None, help="Write .json.gz rather than .json."),
)


def recording_options(command: Command) -> Command:
    """Adds the options; the command gets them by the names of `RecordingOptions`, to be passed to `given_options`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that the user gave, as keywords for whatever records."""
    return {name: value for name, value in options.items() if value is not None and value != ()}
