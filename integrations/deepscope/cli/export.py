"""`deepscope export`: a profile and its trace in the forms of other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deepscope.cli.options import FOLDERS, load, reading_options
from deepscope.cli.output import emit, emit_bytes, emit_pieces, warn, writing
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.report.call_paths import DEPTHS, METRICS, Depth, Metric

if TYPE_CHECKING:
    from deepscope.records import Profile
    from deepscope.store.load import Traces


class ExportJob(NamedTuple):
    """What is to be written, and where."""

    form: str
    path: str | None
    depth: Depth
    metric: Metric | None
    output: str | None
    reading: dict[str, Any]

    def profile(self, *, has_notes: bool = False) -> Profile:
        """The Profile, from the cache where it can; `has_notes` where the traces say what was skipped."""
        return load(self.path, has_notes=has_notes, **self.reading)

    def each_rank(self, whole: Profile) -> list[Profile]:
        """Of a Profile of several ranks that of each one; none of any other."""
        ranks = whole.trace.ranks if len(whole.trace.ranks) > 1 else []
        return [load(self.path, has_notes=True, **{**self.reading, "rank": rank}) for rank in ranks]

    def traces(self) -> Traces:
        """The traces themselves, one a rank."""
        from deepscope.store.load import Traces
        from deepscope.store.selection import newest_folder

        path = newest_folder(FOLDERS) if self.path is None else self.path
        chosen = {name: self.reading[name] for name in ("step", "rank", "stage", "partial")}
        return Traces(path, **chosen)

    def folder(self) -> Path:
        """Where several files go.

        Raises:
            OptionError: none is named, or a file stands there.
        """
        if self.output is None or self.output == "-":
            raise OptionError("format", self.form, "a folder of files; name it with -o FOLDER")
        if Path(self.output).exists() and not Path(self.output).is_dir():
            raise OptionError("output", self.output, f"{self.form} is a folder of files, and a file stands there")
        return Path(self.output)


def _speedscope(job: ExportJob) -> None:
    from deepscope.report.exports.call_paths import speedscope_report

    emit(speedscope_report(job.profile(), job.depth, job.metric) + "\n", job.output)


def _folded(job: ExportJob) -> None:
    from deepscope.report.exports.call_paths import folded_report

    emit(folded_report(job.profile(), job.depth, job.metric or "device"), job.output)


def _json(job: ExportJob) -> None:
    from deepscope.report.exports.tables import profile_json

    emit(profile_json(job.profile()) + "\n", job.output)


def _csv(job: ExportJob) -> None:
    from deepscope.report.exports.tables import all_tables, write_csv_files

    folder = job.folder()
    traces = job.traces()
    with writing(str(folder)):
        _print_written(write_csv_files(all_tables(job.profile(has_notes=True), traces), folder), folder)
    warn(traces.skipped)


def _parquet(job: ExportJob) -> None:
    from deepscope.records.interchange import import_extra
    from deepscope.report.exports.tables import all_tables, write_parquet_files

    folder = job.folder()
    import_extra("pyarrow")  # fails before a long read
    traces = job.traces()
    with writing(str(folder)):
        _print_written(write_parquet_files(all_tables(job.profile(has_notes=True), traces), folder), folder)
    warn(traces.skipped)


def _pprof(job: ExportJob) -> None:
    from deepscope.report.exports.call_paths import pprof_profile

    emit_bytes(pprof_profile(job.profile(), job.depth, job.metric or "device"), job.output)


def _perfetto(job: ExportJob) -> None:
    from deepscope.report.exports.perfetto import perfetto_text, timelines

    traces = job.traces()
    emit_pieces(perfetto_text(timelines(traces, len(traces))), job.output)
    warn(traces.skipped)


def _tensorboard(job: ExportJob) -> None:
    from deepscope.records.interchange import import_extra
    from deepscope.report.exports.tensorboard import write_events

    folder = job.folder()
    import_extra("tensorboard", "tensorboard")  # fails before a long read
    traces = job.traces()
    with writing(str(folder)):
        count = write_events(traces, folder)
    warn(traces.skipped)
    click.echo(f"{count} points in {printable(str(folder))}", err=True)


def _html(job: ExportJob) -> None:
    from deepscope.dashboard.html_file import html_file

    profile = job.profile()
    emit(html_file(profile, job.each_rank(profile)), job.output)


def _print_written(written: list[str], folder: Path) -> None:
    click.echo(f"{len(written)} files in {printable(str(folder))}", err=True)


FORMS: dict[str, Callable[[ExportJob], None]] = {
    "speedscope": _speedscope,
    "folded": _folded,
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
    "pprof": _pprof,
    "perfetto": _perfetto,
    "tensorboard": _tensorboard,
    "html": _html,
}
"""What a profile can be exported to."""


@click.command()
@click.argument("path", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMS)),
    default="speedscope",
    show_default=True,
    help="What to write; csv, parquet and tensorboard are folders, named with -o.",
)
@click.option(
    "--depth",
    type=click.Choice(DEPTHS),
    default="kernel",
    show_default=True,
    help="How far below your lines call paths go; line: not at all.",
)
@click.option("--metric", type=click.Choice(METRICS), help="Call paths by device time or by CPU time alone.")
@reading_options()
@click.option("-o", "--output", metavar="FILE", help="Write to FILE in place of standard output.")
def export(
    path: str | None, form: str, depth: Depth, metric: Metric | None, output: str | None, **reading: Any
) -> None:
    """Write a profile for other tools: tables, call paths, a timeline, scalars or a page.

    speedscope, folded and pprof are call paths; csv, parquet and json tables; perfetto a timeline; tensorboard scalars
    by step; html one page that needs no network. docs/export.md describes each.
    """
    FORMS[form](ExportJob(form, path, depth, metric, output, reading))
