"""The seam to the line scopes: who records them for a recorder's windows, and what they tell the trace."""

from __future__ import annotations

from typing import Any

from deepscope.capture import notices
from deepscope.capture.lines import Limits, LineRecord, LineRecorder, UserCode
from deepscope.capture.options import RecordingOptions
from deepscope.capture.saving.sources import describe_files
from deepscope.capture.workers.training_side import WorkerClocks, WorkerTiming

__all__ = ["add_workers", "arm", "describe_scopes", "line_recorder", "user_code", "worker_clocks"]


def user_code(options: RecordingOptions) -> UserCode:
    """The selection of user code that the options make."""
    return UserCode.find(options.root, tuple(options.include), tuple(options.exclude))


def line_recorder(options: RecordingOptions, code: UserCode) -> LineRecorder | None:
    """The recorder of lines and modules, which hang on the same hooks; None where neither is wanted."""
    if not options.lines and not options.modules:
        return None
    limits = Limits(max_slowdown=options.max_slowdown, max_entries=options.max_entries)
    return LineRecorder(code, lines=options.lines, modules=options.modules, limits=limits)


def worker_clocks(options: RecordingOptions, code: UserCode) -> WorkerClocks | None:
    """The clocks in data-loader workers; None where no lines are wanted."""
    return WorkerClocks(code) if options.lines else None


def arm(clocks: WorkerClocks) -> None:
    """Let workers that start from here on take part; where that cannot be had the recording goes on without them."""
    try:
        clocks.arm()
    except OSError as error:  # a temporary folder that is full, or none at all
        clocks.disarm()
        notices.warn("data-loader workers are not timed", error)


def add_workers(header: dict[str, Any], timings: list[WorkerTiming]) -> None:
    """Put `workers` into the `deepscope` object, and into its `files` those that only they ran."""
    if not timings:
        return
    files: list[dict[str, Any]] = header["files"]
    number = {file["path"]: index for index, file in enumerate(files)}
    new = dict.fromkeys(line.file for timing in timings for line in timing.lines if line.file not in number)
    files += describe_files(new, lambda _: True, header["source"])
    number |= {path: index for index, path in enumerate(new, len(number))}
    header["workers"] = [
        {
            "pid": timing.pid,
            "worker_id": timing.worker_id,
            "num_workers": timing.num_workers,
            "lines": [[number[line.file], *line[1:]] for line in timing.lines],
            "wall_ns": timing.wall_ns,
        }
        for timing in timings
    ]


def describe_scopes(record: LineRecord, code: UserCode, source: str) -> dict[str, Any]:
    """`project_root`, `lines`, `files` and `scopes` of the `deepscope` object."""
    paths = list(dict.fromkeys([*record.files, *(row.file for row in record.scopes if row.file)]))
    number = {path: index for index, path in enumerate(paths)}
    users = set(record.files)
    return {
        "project_root": str(code.root),
        "lines": record.account or {"backend": None},
        "files": describe_files(paths, users.__contains__, source),
        "scopes": [[row.kind, number.get(row.file, -1), *row[2:]] for row in record.scopes],
    }
