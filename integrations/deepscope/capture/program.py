"""A program run as `python program.py` would run it, and recorded without a word in it."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from deepscope.capture.notices import warn
from deepscope.errors import ProgramError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import OptionKeywords, RecordingOptions
    from deepscope.capture.session import StepCallback
    from deepscope.capture.workers.training_side import WorkerClocks

__all__ = ["Program", "record_steps", "record_whole"]

_RECORDER = "deepscope.capture.recorder"


@dataclass(frozen=True)
class Program:
    """What `python` is told: a file, or a module's name behind `-m`, and the arguments of it."""

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    def prepared(self) -> Callable[[], None]:
        """What runs it; `__main__`, `sys.argv` and the import path are its own from here on.

        Raises `ProgramError` where there is no such file or module, `SyntaxError` for a file that is no Python.
        """
        return self._module() if self.is_module else self._file()

    def _module(self) -> Callable[[], None]:
        sys.path[0] = str(Path.cwd())
        try:
            found = importlib.util.find_spec(self.target)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise ProgramError(f"-m {self.target}: there is no module of this name")

        self._take_over(self.target, found.origin)

        def run() -> None:
            runpy.run_module(self.target, run_name="__main__", alter_sys=True)

        return run

    def _file(self) -> Callable[[], None]:
        path = Path(self.target).resolve()
        try:
            code = compile(path.read_bytes(), str(path), "exec")
        except (OSError, ValueError) as error:
            raise ProgramError(f"{self.target}: cannot be read ({getattr(error, 'strerror', None) or error})") from None

        sys.path[0] = str(path.parent)  # in the place of the command's own
        main = self._take_over(self.target, str(path))
        return lambda: exec(code, main.__dict__)  # noqa: S102  the user's own program

    def _take_over(self, name: str, file: str | None) -> ModuleType:
        """Worker processes, pickles and threads look into `__main__`, and the recorder for the project's root."""
        sys.argv = [name, *self.arguments]
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__dict__.update(__file__=file, __cached__=None)
        return main


@contextmanager
def record_steps(folder: Path, *, name: str | None = None, **options: Unpack[OptionKeywords]) -> Iterator[list[Path]]:
    """Records steps of whatever runs inside, and yields the list that the traces come into.

    A step ends with each step of the optimizer that steps first. Recording begins there. Data-loader workers may start
    before that, so they are let in from the beginning. A program that records itself is left to it.
    """
    from deepscope.capture.compiled.level import ProvenanceHold
    from deepscope.capture.naming import check_template
    from deepscope.capture.options import checked_options
    from deepscope.capture.surroundings import optimizer_steps

    checked = checked_options(options)
    check_template(name)
    workers = _armed_workers(checked)
    provenance = ProvenanceHold() if checked.compiled_lines else None  # the first step compiles before it is recorded

    steps: StepCallback | None = None
    leader: Any = None
    traces: list[Path] = []

    def stepped(optimizer: Any, *_: Any) -> None:
        nonlocal steps, leader
        if leader is None:
            leader = optimizer
            if _RECORDER not in sys.modules:
                from deepscope.capture.session import StepCallback

                steps = StepCallback(folder, name=name, workers=workers, **options)
        if steps is not None and optimizer is leader:
            steps()

    stop_listening = optimizer_steps.listen(stepped)
    try:
        yield traces
    finally:
        stop_listening()
        if steps is not None:
            steps.close()
            traces += steps.recording.traces
        if provenance is not None:
            provenance.release()
        if workers is not None:
            workers.disarm()


@contextmanager
def record_whole(folder: Path, *, name: str | None = None, **options: Unpack[OptionKeywords]) -> Iterator[list[Path]]:
    """Records everything that runs inside, and yields the list that the trace comes into."""
    from deepscope.capture.session import Recording

    traces: list[Path] = []
    recording = Recording(folder, name=name, **options)
    try:
        with recording:
            yield traces
    finally:
        traces += recording.traces


def _armed_workers(options: RecordingOptions) -> WorkerClocks | None:
    """Clocks in the workers that start from here on; None where they have no room."""
    from deepscope.capture.line_scopes import user_code, worker_clocks

    workers = worker_clocks(options, user_code(options))
    try:
        if workers is not None:
            workers.arm()
    except OSError as error:
        warn("data-loader workers are not recorded", error)
        return None
    return workers
