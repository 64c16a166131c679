"""`deepscope attach`: records some steps of a job that is already running."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from deepscope.capture.naming import DEFAULT_FOLDER
from deepscope.capture.on_demand.agreement import AgreedRecording, RecordingRequest
from deepscope.capture.on_demand.injection import inject, inspect, ranks_around
from deepscope.capture.on_demand.jobs import TrainingJob, clients_of, find_jobs, jobs_of, live_entries
from deepscope.capture.on_demand.protocol import ControlAnswer, control_folders
from deepscope.capture.options import checked_ranks
from deepscope.cli.output import emit, form_option, rows_option, tell
from deepscope.cli.recording_options import asked_options
from deepscope.cli.report import rendered
from deepscope.errors import ControlError, NoTraceError
from deepscope.printable import printable

_STEPS = 5


@click.command()
@click.argument("target", required=False, metavar="[PID|NAME|FOLDER]")
@click.option("--steps", type=click.IntRange(1), help=f"How many steps to record.  [default: {_STEPS}]")
@asked_options
@click.option(
    "--folder",
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Where the traces go, of a job that was started without DeepScope (Python 3.14), or of a server.",
)
@click.option("--url", metavar="URL", help="Record a server of models (vLLM, SGLang), for --time or SGLang's --steps.")
@rows_option
@form_option("text", "json", "paths")
def attach(
    target: str | None,
    *,
    steps: int | None,
    time: float | None,
    warmup: int | None,
    ranks: tuple[str, ...],
    topics: str | None,
    folder: str,
    url: str | None,
    limit: int | None,
    form: str,
) -> None:
    """Record some steps of a job that is already running, and print the hot lines.

    The job was started with `deepscope run --on-demand`, or calls `deepscope.on_demand()`. It is named by the number of
    any of its processes (the launcher's, too), by its program or by the folder of its traces; without a name the jobs
    are listed. A process of Python 3.14 or later needs no preparation; it is named by its number. All ranks of the job
    on this machine record the same steps. Ctrl-C ends the window; the job goes on. With
    --format paths only the paths of the traces are printed.
    """
    choice = checked_ranks(ranks) if ranks else None
    if steps is not None and time is not None:
        raise click.UsageError("--steps and --time exclude each other")
    if url is not None:
        if target is not None or ranks or topics is not None or warmup is not None:
            raise click.UsageError("with --url stand --time or --steps, --folder and the form of the report alone")
        _show(_recorded_server(url, folder, steps, time), form, limit=limit)
        return
    named = Path(target) if target is not None and Path(target).is_dir() else None
    jobs, problems = find_jobs(live_entries(traces=named))
    if target is None:
        _list(jobs, problems, form)
        return
    job = _job_named(target, jobs, problems, folder)
    for problem in problems:
        tell(problem)
    wanted = RecordingRequest(
        steps=(steps or _STEPS) if time is None else None,
        seconds=time,
        warmup=1 if warmup is None else warmup,
        options={} if topics is None else {"topics": topics},
    )
    chosen = (job.first.answer.rank,) if isinstance(choice, str) else tuple(choice or ())
    outcomes = _recorded(job, chosen, wanted)
    traces = [path for one in outcomes for path in one.traces]
    for one in outcomes:
        who = f"rank {one.rank}: " if len(outcomes) > 1 else ""
        for note in [*one.notes, *([] if one.traces else [one.problem])]:
            tell(f"{who}{note}")
    if not traces:
        raise ControlError("nothing was recorded")
    _show(traces, form, limit=limit)


def _recorded_server(url: str, folder: str, steps: int | None, seconds: float | None) -> list[str]:
    from deepscope.capture.model_server import ModelServer

    line = _Line()
    try:
        return [str(path) for path in ModelServer(url, Path(folder), line.show).record(steps=steps, seconds=seconds)]
    finally:
        line.clear()


def _show(traces: list[str], form: str, *, limit: int | None) -> None:
    if form == "paths":
        emit("".join(f"{path}\n" for path in traces))
        return
    emit(rendered(_profile(traces), form, limit=limit))
    if form == "text":
        where = traces[0] if len(traces) == 1 else str(Path(traces[0]).parent)
        click.echo(f"\n{printable(where)}", err=True)


def _profile(traces: list[str]) -> Any:
    from deepscope.store.files import single_file
    from deepscope.store.load import load_selection
    from deepscope.store.runs import Recognizer
    from deepscope.store.selection import select_from

    files = [file for path in traces if (file := single_file(path)) is not None]
    if not files:
        raise NoTraceError(f"{traces[0]}: no such file")
    return load_selection(select_from(Recognizer().traces((), named=files)))


def _recorded(job: TrainingJob, ranks: tuple[int, ...], wanted: RecordingRequest) -> list[ControlAnswer]:
    line = _Line()
    clients = clients_of(job, ranks)
    try:
        return AgreedRecording(clients, wanted, show=line.show, tell=line.tell).record()
    except KeyboardInterrupt:
        line.tell("the job goes on; a window that is open ends with its step and is saved")
        raise
    finally:
        line.clear()
        for one in clients:
            one.leave()


class _Line:
    """A line of progress on the terminal, which the next one takes the place of."""

    def __init__(self) -> None:
        self._is_on = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._is_on:
            click.echo(f"\r{printable(text)}\x1b[K", nl=False, err=True)

    def tell(self, text: str) -> None:
        self.clear()
        tell(text)

    def clear(self) -> None:
        if self._is_on:
            click.echo("\r\x1b[K", nl=False, err=True)


def _job_named(target: str, jobs: list[TrainingJob], problems: list[str], folder: str) -> TrainingJob:
    matching = jobs_of(target, jobs)
    if not matching and target.isdecimal():
        matching = jobs_of(target, _prepared(int(target), folder, problems))
    if len(matching) == 1:
        return matching[0]
    if matching:
        listed = "\n".join(f"  {_described(job)}" for job in matching)
        raise ControlError(f"{target}: {len(matching)} jobs match; name one by its process:\n{listed}")
    if problems:
        raise ControlError("; ".join(problems))
    known = "; `deepscope attach` lists those that can be recorded" if jobs else ""
    raise ControlError(
        f"{target}: no job that waits to be recorded has this name{known}; start it with `deepscope run --on-demand`"
    )


def _prepared(pid: int, folder: str, problems: list[str]) -> list[TrainingJob]:
    """The jobs after a control server was opened in this process, and in the other ranks of its job."""
    process = inspect(pid)
    entries = live_entries(control_folders(process.environment))
    jobs, silent = find_jobs(entries)
    if jobs_of(str(pid), jobs):  # it was given another folder for control servers
        return jobs
    problems += [one for one in silent if one not in problems]
    if any(one.entry.pid in {rank.pid for rank in ranks_around(process)} for one in entries) and silent:
        return jobs
    for one in ranks_around(process):
        inject(one, folder, tell)
    return find_jobs(live_entries(control_folders(process.environment)))[0]


def _list(jobs: list[TrainingJob], problems: list[str], form: str) -> None:
    for problem in problems:
        tell(problem)
    if form == "json":
        import msgspec

        rows = [
            {
                "pids": job.pids,
                "program": job.first.entry.program,
                "folder": job.first.answer.folder,
                "ranks": [one.answer.rank for one in job.members],
                "world_size": job.first.answer.world_size,
                "step": max(one.answer.step for one in job.members),
                "step_ns": job.first.answer.step_ns,
                "state": job.first.answer.state,
            }
            for job in jobs
        ]
        emit(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n")
        return
    if not jobs:
        click.echo("no job waits to be recorded; start one with: deepscope run --on-demand train.py")
        return
    emit("".join(f"{_described(job)}\n" for job in jobs))


def _described(job: TrainingJob) -> str:
    answer = job.first.answer
    size = f", {len(job.members)} of {answer.world_size} ranks" if answer.world_size > 1 else ""
    at = max(one.answer.step for one in job.members)
    pace = f" of {answer.step_ns / 1e6:,.1f} ms" if answer.step_ns else ""
    what = re.sub(r"\s+", " ", job.first.entry.program)
    return printable(f"{job.first.entry.pid:>8}  {what}{size}, step {at:,}{pace}, {answer.state}, {answer.folder}")
