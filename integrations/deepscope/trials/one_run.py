"""`python -m deepscope.trials.one_run REQUEST`: one run of a program, up to its last timed step."""

from __future__ import annotations

import faulthandler
import hashlib
import multiprocessing
import os
import pickle
import random
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import torch

from deepscope.capture.program import Program
from deepscope.errors import ProgramError
from deepscope.trials.child.facts import FactCollector
from deepscope.trials.child.hooks import ImportActions, OutermostModules, RemedyHooks
from deepscope.trials.child.steps import SEED, BackwardRoots, RoundingNoise, StepClock
from deepscope.trials.messages import STANDS_FOR, Answer, Request
from deepscope.trials.remedies import REMEDIES

_WORDS = 300
"""So many letters of an error's text are kept."""
_MOST = 50
"""Files outside the scratch folder that are listed."""
_WRITES = os.O_WRONLY | os.O_RDWR


class ProgramRun:
    """One run: everything that watches the program, and the answer."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._owner = os.getpid()
        self._refused: dict[str, str] = {}
        self.clock = StepClock(
            warmup=request.warmup, steps=request.steps, seconds=request.seconds, on_end=lambda: self.end("")
        )
        self.roots, self.modules, self.imports = BackwardRoots(), OutermostModules(), ImportActions()
        self.facts = FactCollector(modules=self.modules, clock=self.clock)
        temporary = (request.folder, str(Path(request.answer).parent))
        self.files = WrittenFiles(Path(request.folder), temporary)
        self.hooks: dict[str, RemedyHooks] = {}

    def start(self) -> None:
        """Put everything in place, remedies last: they are what the program meets first."""
        self.imports.start()
        self.roots.start()
        self.roots.at_first(self.facts.at_backward)
        self.facts.start(self.imports)
        self.clock.start()
        self.clock.while_warming(self.modules.stop)
        if self.request.rounding:
            noise = RoundingNoise(self.request.rounding)
            self.modules.listen(noise.change_module)
            noise.start(self.clock)
        for change in self.request.changes:
            hooks = RemedyHooks(
                change.remedy, imports=self.imports, modules=self.modules, clock=self.clock, refused=self._refuse
            )
            self.hooks[change.remedy] = hooks
        for change in reversed(self.request.changes):  # a later one sees what those before it have set
            REMEDIES[change.remedy].apply(change.settings, self.hooks[change.remedy])
        self.modules.start()
        self.files.start()

    def _refuse(self, name: str, reason: str) -> None:
        self._refused[name] = reason
        self.end("")

    def end(self, error: str) -> NoReturn:
        """Write the answer and end the process, the program's own end left out: it may save, or upload."""
        if os.getpid() != self._owner:
            os._exit(0)  # a forked child of the program's, which made a step of its own
        answer = Answer(
            steps=self.clock.count,
            marks=self.clock.marks,
            losses=self.roots.read(),
            random_state=_random_state(),
            samples=self.facts.loaders.samples(),
            facts=self.facts.collected(None if self.request.is_module else Path(self.request.target)),
            applied=[name for name, hooks in self.hooks.items() if hooks.is_applied],
            refused=self._refused,
            written=list(self.files.outside),
            outside=_outside(self.request.folder),
            error=error,
        )
        path = Path(self.request.answer)
        path.with_suffix(".part").write_bytes(msgspec.msgpack.encode(answer))
        path.with_suffix(".part").replace(path)
        for child in multiprocessing.active_children():
            with suppress(Exception):
                child.kill()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


class WrittenFiles:
    """Sees each file that Python opens, before it does."""

    def __init__(self, folder: Path, others: tuple[str, ...]) -> None:
        self._folder = str(folder)
        self._ours = (self._folder + os.sep, *others, "/dev/", "/proc/", "/sys/")
        self._is_busy = False
        self.outside: dict[str, None] = {}

    def start(self) -> None:
        """Begin to watch; Python has no way to end it, and this process has nothing else to do."""
        sys.addaudithook(self._seen)
        save = torch.save

        def saved(thing: Any, file: Any, *arguments: Any, **keywords: Any) -> Any:
            if isinstance(file, (str, os.PathLike)):  # C++ opens it
                self._opened(os.fspath(file), is_emptied=True)
            return save(thing, file, *arguments, **keywords)

        torch.save = saved

    def _seen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            is_written = any(one in mode for one in "wax+") if isinstance(mode, str) else bool(flags & _WRITES)
            if is_written and isinstance(path, (str, bytes, os.PathLike)):
                is_emptied = "w" in mode if isinstance(mode, str) else bool(flags & os.O_TRUNC)
                self._opened(os.fsdecode(path), is_emptied=is_emptied)
        elif event == "sqlite3.connect" and isinstance(arguments[0], (str, bytes)):
            self._opened(os.fsdecode(arguments[0]), is_emptied=False)

    def _opened(self, name: str, *, is_emptied: bool) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        try:
            with suppress(OSError, ValueError):
                self._prepare(os.path.abspath(name), is_emptied=is_emptied)  # noqa: PTH100  links stay links
        finally:
            self._is_busy = False

    def _prepare(self, path: str, *, is_emptied: bool) -> None:
        is_inside = path.startswith(self._folder + os.sep)
        if is_inside and os.path.islink(path):  # noqa: PTH114  called for each file that is written
            source = os.path.realpath(path)
            os.unlink(path)  # noqa: PTH108
            if not is_emptied:
                shutil.copyfile(source, path)
        elif len(self.outside) < _MOST:
            real = os.path.realpath(path)
            if not real.startswith(self._ours):
                self.outside[real] = None


def _random_state() -> str:
    digest = hashlib.sha256(torch.get_rng_state().numpy().tobytes())
    digest.update(pickle.dumps(random.getstate()))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        digest.update(pickle.dumps(numpy.random.get_state(legacy=True)[1:3]))
    if torch.cuda.is_initialized():
        digest.update(torch.cuda.get_rng_state().numpy().tobytes())
    return digest.hexdigest()


def _outside(folder: str) -> list[str]:
    """Modules imported from the folder that the scratch folder stands for."""
    source = os.environ.get(STANDS_FOR, "")
    if not source:
        return []
    found = []
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None) or ""
        if file.startswith(source + os.sep) and not file.startswith(folder + os.sep) and "site-packages" not in file:
            found.append(name)
    return sorted(found)


def _seed() -> None:
    random.seed(SEED)
    torch.manual_seed(SEED)
    with suppress(ImportError):
        import numpy as np

        np.random.seed(SEED)  # noqa: NPY002  the global one is what programs draw from


def _error_words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_WORDS]


def main() -> None:
    """Run the program that the file named by the only argument asks for."""
    faulthandler.enable()
    request = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Request)
    run = ProgramRun(request)
    run.start()
    try:
        start = Program(request.target, tuple(request.arguments), request.is_module).prepared()
    except (SyntaxError, ProgramError) as error:
        run.end(_error_words(error) if isinstance(error, SyntaxError) else str(error))
    _seed()
    try:
        start()
    except SystemExit as ended:
        run.end(f"it ended with exit code {ended.code}" if ended.code not in (None, 0) else "")
    except BaseException as error:  # noqa: BLE001  the program's own
        import traceback

        traceback.print_exc()
        run.end(_error_words(error))
    run.end("")


if __name__ == "__main__":
    main()
