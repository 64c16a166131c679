"""A window that has ended, as torch's own file and what is to be made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from deepscope.capture import naming
from deepscope.capture.audit.step_audit import StepAudit
from deepscope.capture.memory.history import MemoryHistory
from deepscope.capture.naming import check_space, make_trace_folder
from deepscope.capture.saving.header import RecordingSession
from deepscope.capture.saving.rewrite import Instructions
from deepscope.capture.saving.saver import SaveJob
from deepscope.capture.step_timer import StepTimer
from deepscope.capture.window import Window
from deepscope.trace.format.run_account import snapshot_path
from deepscope.trace.format.span_names import WINDOW_NAME, step_name


def exported(
    window: Window,
    session: RecordingSession,
    folder: Path,
    *,
    schedule: Mapping[str, int] | None,
    timer: StepTimer,
    complete: bool,
    otherwise: SaveJob | None = None,
    skip_if_empty: bool = False,
    audit: StepAudit | None = None,
) -> SaveJob:
    """Has torch write the window's events into `folder`, which is made where it is missing.

    Raises `RecorderError` where the folder or the space in it cannot be had, and what torch raises.
    """
    folder = folder.absolute()
    make_trace_folder(folder)
    target = naming.trace_path(folder, session.worker, compress=session.options.compress)
    raw = naming.raw_path(target)
    check_space(folder)
    try:
        window.export(raw)
        raw.stat()  # torch only logs a write that failed
    except BaseException as error:
        try:
            if isinstance(error, (OSError, RuntimeError)):
                check_space(folder)
        finally:
            naming.remove_raw(raw)
        raise
    instructions = Instructions(
        raw=str(raw),
        target=str(target),
        header=session.header(
            window,
            schedule=schedule,
            complete=complete,
            recorded_steps=timer.recorded if window.steps else None,
            number=None if otherwise is None else otherwise.instructions.header.window,
        ),
        rename=_new_names(window),
        drop_if_empty=window.step_name,
        on_its_thread=window.steps > 0,  # A block without steps may leave all work to threads.
        clock_readings=window.clock_readings,
        align_time=session.options.align_time,
        skip_if_empty=skip_if_empty,
    )
    return SaveJob(
        instructions=instructions,
        otherwise=otherwise,
        worker_timings=window.worker_timings,
        counted=window.counted,
        plain_steps=timer.plain_later(),
        audited=audit.audited if audit is not None else lambda: None,
        is_first=session.is_first,
        local_rank=session.local_rank,
        on_written=_write_beside(window.memory_history),
    )


def _write_beside(history: MemoryHistory | None) -> Callable[[Path], None]:
    return (lambda _: None) if history is None else lambda trace: history.write(snapshot_path(trace))


def _new_names(window: Window) -> dict[str, str | None]:
    names = {WINDOW_NAME: step_name(0) if window.steps else None, **window.annotation_names}
    return names if window.has_begun_step else names | {window.step_name: None}
