"""`deepscope run`: records a program without a change to it."""

from __future__ import annotations

import atexit
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deepscope.capture.topics import help_text
from deepscope.cli.output import emit, rows_option, tell, terminal
from deepscope.cli.recording_options import (
    COUNTED,
    asked_options,
    given_options,
    project_settings,
    run_options,
    with_settings,
)
from deepscope.cli.report import rendered
from deepscope.errors import DeepScopeError, MissingExtraError
from deepscope.store import Profile, load_profile
from deepscope.store.load import load_selection
from deepscope.store.selection import awaited_ranks
from deepscope.store.trace_identity import parse_name

if TYPE_CHECKING:
    from deepscope.capture.program import Recorded

_FOLDER = Path("deepscope_logs")
_PEERS_S = 10.0
"""So long the first rank waits for the traces of others that end their program a little later."""
_PACKAGE = Path(__file__).resolve().parents[1]


class _WithTopics(click.Command):
    """Lists the topics behind the options; a terminal's width is kept there already."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        formatter.write(f"\n{help_text()}\n")


@click.command(cls=_WithTopics, context_settings={"allow_interspersed_args": False})
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module, as in `python -m`.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where the traces are written.",
)
@click.option("--whole", is_flag=True, help="Record from start to end instead: for programs without steps.")
@click.option("--on-demand", is_flag=True, help="Record nothing until `deepscope attach` asks for it.")
@asked_options
@run_options
@rows_option
@click.option("-q", "--quiet", is_flag=True, help="Show nothing; the trace is written.")
def run(
    program: str,
    arguments: tuple[str, ...],
    *,
    is_module: bool,
    folder: Path,
    whole: bool,
    on_demand: bool,
    limit: int | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Run PROGRAM with its ARGUMENTS as Python would, record some of its training steps, and print the hot lines.

    A step ends with each step of the program's torch optimizer, without one with each backward pass; where nothing
    trains, a loader's batches are steps. A program that records itself (`Trainer(profiler="deep")`,
    `deepscope.profile`) is run as it is. Options of `deepscope run` stand before PROGRAM. The other options of a
    recording stand in [tool.deepscope] of the project's pyproject.toml (docs/recording.md).
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "torch")
    from deepscope.capture.process_hooks.open_recorders import fail
    from deepscope.capture.program import Program, record_on_demand, record_steps, record_whole

    given = given_options(options)
    if on_demand:
        _check_on_demand(given, whole=whole)
    else:
        _check_steps(given, whole=whole)
    settings = project_settings(program, is_module=is_module)
    filename, control = settings.pop("filename", None), settings.pop("control", "auto")
    if on_demand or whole or "time" in given:
        for name in COUNTED:
            settings.pop(name, None)
    given = with_settings(given, settings)
    if on_demand:
        recording = record_on_demand(folder, filename=filename, control=control, **given)
    elif whole:
        recording = record_whole(folder, filename=filename, **given)
    else:
        recording = record_steps(folder, filename=filename, **given)
    try:
        start = Program(program, arguments, is_module).prepared()
    except SyntaxError as error:
        sys.exit(_print_traceback(error))
    code = 0
    with ExitStack() as end:
        recorded = end.enter_context(recording)
        try:
            start()
        except SystemExit as ended:
            code = _exit_code(ended)
        except Exception as error:  # noqa: BLE001  the program's own, shown as Python shows it
            fail(error)
            code = _print_traceback(error)
        recorded.is_complete = not code
        by_optimizer = not whole and not on_demand
        show = partial(
            _show, recorded, given.get("ranks"), code=code, by_optimizer=by_optimizer, limit=limit, quiet=quiet
        )
        if any(map(_may_train, threading.enumerate())):
            # Python waits for them before it calls what is registered here.
            atexit.register(_end_at_exit, end.pop_all(), show)
            sys.exit(code)
    show()
    sys.exit(code)


def _may_train(thread: threading.Thread) -> bool:
    """Whether Python waits for it, and it is the program's: one of ours that saves a trace is waited for here."""
    is_ours = thread is threading.main_thread() or thread.name.startswith("deepscope-")
    return not thread.daemon and not is_ours


def _end_at_exit(end: ExitStack, show: Callable[[], None]) -> None:
    try:
        end.close()
        show()
    except DeepScopeError as error:
        tell(error.message())


def _show(recorded: Recorded, ranks: Any, *, code: int, by_optimizer: bool, limit: int | None, quiet: bool) -> None:
    """Prints the hot lines, on the first rank that records."""
    if not recorded.is_first:
        _warn_of_ranks(ranks)
    elif recorded.traces and not quiet:
        profile = _profile(recorded.traces[-1], ranks, timeout_s=0 if code else _PEERS_S)
        click.echo()
        emit(rendered(profile, "text", limit=limit))
        _print_evaluations(recorded.traces[:-1], profile)
    elif by_optimizer and not recorded.traces and "deepscope.capture.recorder" not in sys.modules:
        words = (
            "it made no step, by a torch optimizer, a backward pass or a DataLoader's batch; --whole records all of it"
        )
        words += ", and processes that the program starts record with deepscope.profile"
        tell(f"nothing was recorded in this process: {words}")


def _print_evaluations(traces: Iterable[Path], training: Profile) -> None:
    """Prints what was found in an evaluation that was recorded beside the training, if anything."""
    from deepscope.capture.saving.saver import wait_for_profile
    from deepscope.capture.whole_run.further_windows import EVALUATION_STAGE
    from deepscope.report.text_report import evaluation_text

    for trace in traces:
        if parse_name(trace.name)[1] == EVALUATION_STAGE:
            wait_for_profile(trace)
            text = evaluation_text(load_profile(trace), training, **terminal())
            emit(f"\n{text}" if text else "")


def _warn_of_ranks(ranks: Any) -> None:
    """A process alone is rank 0, and nobody else says that it was not chosen."""
    from deepscope.capture import process_identity as process

    if ranks is not None and process.find_world_size() == 1:
        tell("nothing was recorded: --rank does not name rank 0, which a process alone is")


def _check_on_demand(given: dict[str, Any], *, whole: bool) -> None:
    chosen = sorted({"wait", "warmup", "active", "time", "after", "audit"} & given.keys())
    if whole or chosen:
        option = "--whole" if whole else f"--{chosen[0]}"
        raise click.UsageError(f"{option} says what is recorded by itself; with --on-demand `deepscope attach` says it")


def _check_steps(given: dict[str, Any], *, whole: bool) -> None:
    """Options that count steps go with neither --whole nor --time, and --after with --time alone."""
    is_timed = "time" in given
    counted = {"wait", "active"} | ({"warmup"} if whole else set()) if whole or is_timed else set()
    if chosen := sorted(counted & given.keys()):
        reason = (
            "and --whole has none; --time says for how long it records" if whole else "and --time records by the clock"
        )
        raise click.UsageError(f"--{chosen[0]} counts steps, {reason}")
    if whole and "audit" in given:
        raise click.UsageError("--audit looks at steps, and --whole has none")
    if "after" in given and not is_timed:
        raise click.UsageError("--after goes with --time")


def _profile(trace: Path, ranks: Any, *, timeout_s: float) -> Profile:
    """Of the newest window: all its ranks on this host, which may still be written, and those of others that are."""
    from deepscope.capture import process_identity as process
    from deepscope.capture.naming import is_being_written
    from deepscope.capture.options import checked_ranks, is_chosen
    from deepscope.capture.saving.saver import wait_for_profile

    wait_for_profile(trace)
    choice = None if ranks is None else checked_ranks(ranks)
    here = process.local_ranks()
    expected = [rank for rank in here if is_chosen(choice, rank, rank - here.start)]
    if len(expected) == 1 and process.find_world_size() == 1:
        return load_profile(trace)
    window = awaited_ranks(trace, expected, timeout_s=timeout_s, is_pending=is_being_written)
    if missing := set(expected) - set(window.ranks):
        words = ", ".join(map(str, sorted(missing)))
        tell(f"without rank {words}: no trace of it is in {trace.parent} so far")
    return load_selection(window)


def _exit_code(ended: SystemExit) -> int:
    """What Python makes of `sys.exit(…)`."""
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    click.echo(str(ended.code), err=True)
    return 1


def _print_traceback(error: Exception) -> int:
    """Prints a traceback that begins in the program, as without DeepScope around it."""
    traceback = error.__traceback__
    while traceback is not None and _is_around(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    return 1


def _is_around(file: str) -> bool:
    return file.startswith("<frozen ") or Path(file).name == "runpy.py" or Path(file).is_relative_to(_PACKAGE)
