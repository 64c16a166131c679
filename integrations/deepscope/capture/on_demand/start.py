"""`deepscope.on_demand`: makes this process one that `deepscope attach` can record."""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from deepscope.capture.naming import DEFAULT_FOLDER, check_template, current_folder
from deepscope.capture.notices import warn
from deepscope.capture.on_demand.idle_recorder import IdleRecorder
from deepscope.capture.on_demand.protocol import ControlEntry, place_for_socket, started_at, this_host
from deepscope.capture.options import OptionKeywords, checked_options
from deepscope.errors import ControlError, DeepScopeError, OptionError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import RecordingOptions
    from deepscope.capture.process_hooks.optimizer_steps import LeadingOptimizer
    from deepscope.capture.recorder import Recorder
    from deepscope.capture.resources import RunCounters
    from deepscope.capture.schedule import Plan

CONTROLS = ("auto", "socket", "files")
"""Where requests come from: `auto` is a socket where there can be one, else files beside the traces."""


class _Control(Protocol):
    def open(self) -> None: ...
    def close(self) -> None: ...


class OnDemand:
    """An idle recorder with its control server, from `open` to `close`, which is also the end of the process.

    Steps are those of the torch optimizer that steps first, until `step` is called: from then on they are the caller's.
    The object may be called in place of `step`, with whatever a loop passes to its callbacks.
    """

    def __init__(
        self,
        folder: str | Path = DEFAULT_FOLDER,
        *,
        filename: str | None = None,
        control: str = "auto",
        **options: Unpack[OptionKeywords],
    ) -> None:
        checked_options(options)
        check_template(filename)
        if control not in CONTROLS:
            raise OptionError("control", control, f"must be one of {', '.join(map(repr, CONTROLS))}")
        self.problem = ""
        """Why there is no control."""
        self._name = filename
        self._kind = control
        self.idle_recorder = IdleRecorder(
            self.make_recorder,
            folder=current_folder() / folder,
            options=dict(options),
            facts=_facts,
            counted_by="optimizer",
        )
        self._control: _Control | None = None
        self._counters: RunCounters | None = None
        self._leave: Callable[[], None] | None = None

    def open(self, listen: Callable[[], None] | None = None, *, counts_run: bool = True) -> OnDemand:
        """Count steps and answer; where no control server can be had a warning says why, and the program goes on.

        `listen` calls `self.listen` at a moment of its choice. `counts_run`: whether the counters of the whole run are
        counted here, if the options ask for them.
        """
        global _current
        _current = self
        (listen or self.listen)()
        self._open_control()
        if counts_run:
            self.count_run()
        atexit.register(self.close)
        return self

    def count_run(self) -> None:
        """Begin with the counters of the whole run, if the options ask for them and this rank records."""
        options = checked_options(self.idle_recorder.options)
        if options.counters != "run":
            return
        from deepscope.capture.resources import counters_of_run
        from deepscope.capture.session import RecordingSession

        session = RecordingSession(options, name=self._name, run_id=secrets.token_hex(6))
        session.begin()
        if session.is_chosen:
            self._counters = counters_of_run(session, self.idle_recorder.folder)
        if self._counters is not None:
            self._counters.start()

    def end_run(self) -> None:
        """The counters of the whole run end, and their file is written."""
        counters, self._counters = self._counters, None
        if counters is not None:
            counters.stop()

    @property
    def is_open(self) -> bool:
        """Whether there is a control."""
        return self._control is not None

    def listen(self) -> None:
        """Count the steps of optimizers."""
        from deepscope.capture.process_hooks import optimizer_steps

        leader = optimizer_steps.LeadingOptimizer()
        self._leave = optimizer_steps.listen_to_steps(partial(self._stepped, leader))

    def _open_control(self) -> None:
        problem = ""
        for kind in ("socket", "files") if self._kind == "auto" else (self._kind,):
            try:
                self._control = self._new_control(kind)
                self._control.open()
            except (DeepScopeError, OSError) as error:
                self._control = None
                problem = problem or str(error)
            else:
                return
        self.problem = problem
        warn(f"this job cannot be recorded on demand: {problem}")

    def _new_control(self, kind: str) -> _Control:
        idle = self.idle_recorder
        if kind == "files":
            from deepscope.capture.on_demand.control_server import ControlFiles

            files = ControlFiles(idle.folder, self._entry("files"), idle.answer, idle.let_go)
            idle.on_step = files.look
            return files
        if not hasattr(socket, "AF_UNIX"):
            raise ControlError("this system has no sockets that are files")
        from deepscope.capture.on_demand.control_server import ControlServer

        path = place_for_socket(os.getpid())
        return ControlServer(path, self._entry(str(path)), idle.answer, idle.let_go)

    def _entry(self, control: str) -> ControlEntry:
        pid = os.getpid()
        facts = _facts()
        return ControlEntry(
            pid=pid,
            control=control,
            started=started_at(pid),
            here=this_host(),
            host=socket.gethostname(),
            program=sys.argv[0] if sys.argv else "",
            folder=str(self.idle_recorder.folder),
            rank=facts["rank"],
            world_size=facts["world_size"],
            job=facts["job"],
            python=sys.executable or "",
            since=time.time(),
        )

    def _stepped(self, leader: LeadingOptimizer, optimizer: Any, *_: Any) -> None:
        if leader.leads(optimizer, may_change=not self.idle_recorder.is_asked):
            self.idle_recorder.step()

    def step(self) -> None:
        """A step has ended and the next one begins; optimizers count no longer."""
        if self._leave is not None:
            self.count_no_optimizers("program")
        self.idle_recorder.step()

    def count_no_optimizers(self, counted_by: str) -> None:
        """Somebody else tells the steps from here on."""
        if self._leave is not None:
            self._leave()
            self._leave = None
        self.idle_recorder.counted_by = counted_by

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        self.step()

    def close(self) -> None:
        """Save a window that is open, and let nobody in any more."""
        global _current
        self.count_no_optimizers("")
        self.idle_recorder.finish()
        self.end_run()
        control, self._control = self._control, None
        if control is not None:
            with suppress(Exception):
                control.close()
        if _current is self:
            _current = None
        atexit.unregister(self.close)

    def __enter__(self) -> OnDemand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def make_recorder(self, options: RecordingOptions, plan: Plan | None, first_step: int, run_id: str) -> Recorder:
        """The recorder of a window."""
        from deepscope.capture.recorder import Recorder
        from deepscope.capture.session import RecordingSession

        return Recorder(
            RecordingSession(options, name=self._name, run_id=run_id),
            plan,
            folder=self.idle_recorder.folder,
            first_step=first_step,
            is_abandoned=lambda: True,  # a recording of the program's own goes first
            counts_run=False,
        )


_current: OnDemand | None = None


def current() -> OnDemand | None:
    """The one of this process, if it is open."""
    return _current if _current is not None and _current.idle_recorder.is_of_this_process else None


def tell_step() -> None:
    """A step of the program's own has ended, as `prof.step()` and callbacks say."""
    if _current is not None:
        _current.step()


def on_demand(
    folder: str | Path = DEFAULT_FOLDER,
    *,
    filename: str | None = None,
    control: str = "auto",
    **options: Unpack[OptionKeywords],
) -> OnDemand:
    """Let `deepscope attach` record this process, whenever somebody asks; until then nothing is recorded.

    Call it once, before the training loop. The traces go to `folder`. A second call in the same process returns what
    the first one made.

    Args:
        folder: where the traces go.
        filename: first part of the traces' names, or a template of them.
        control: where requests come from: "socket", "files" (beside the traces, for containers and other hosts that
            share the folder), or "auto".
        **options: what is recorded, unless `deepscope attach` asks for something else.

    Raises:
        OptionError: an option that does not exist or has a value that cannot be used.
    """
    made = OnDemand(folder, filename=filename, control=control, **options)
    return current() or made.open()


def _facts() -> Mapping[str, Any]:
    """Which rank of which job this is; a process group may come up late."""
    from deepscope.capture.process_identity import find_rank, find_world_size

    rank, size = find_rank(), find_world_size()
    return {"rank": rank, "world_size": size, "job": _job(size)}


def _job(world_size: int) -> str:
    """What the ranks of a job share, and no others of the same machine."""
    environ = os.environ
    if world_size < 2:
        return f"pid {os.getpid()}"
    if "MASTER_PORT" in environ:
        return f"{environ.get('MASTER_ADDR', '')}:{environ['MASTER_PORT']} {environ.get('TORCHELASTIC_RUN_ID', '')}"
    if "SLURM_JOB_ID" in environ:
        return f"SLURM {environ['SLURM_JOB_ID']}.{environ.get('SLURM_STEP_ID', '')}"
    return f"parent {os.getppid()}"
