"""The seam to the line scopes: who records them for a recorder's windows."""

from __future__ import annotations

from deepscope.capture import notices
from deepscope.capture.lines import Limits, LineRecorder, UserCode
from deepscope.capture.options import RecordingOptions
from deepscope.capture.workers.training_side import WorkerClocks


def user_code(options: RecordingOptions) -> UserCode:
    """The selection of user code that the options make."""
    return UserCode.find(options.root, tuple(options.include), tuple(options.exclude))


def line_recorder(options: RecordingOptions, code: UserCode) -> LineRecorder | None:
    """The recorder of lines and modules, which hang on the same hooks; None where neither is wanted."""
    if not options.lines and not options.modules:
        return None
    limits = Limits(max_slowdown=options.max_slowdown, max_entries=options.max_entries)
    return LineRecorder(
        code, lines=options.lines, modules=options.modules, limits=limits, libraries=options.libraries == "hot"
    )


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
