"""Runs of a program, each in a process and a scratch folder of its own, within a budget of time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from deepscope.capture.options import OFF_VARIABLE
from deepscope.errors import DeepScopeError
from deepscope.trials.messages import STANDS_FOR, Answer, Change, Request
from deepscope.trials.scratch import Filler, ScratchFolder, fill_scratch

_LAST_LINES = 3
_LEAST_SECONDS = 1.0
_SHOWN = 5
"""Folders that are named."""


class RunFailedError(DeepScopeError):
    """A run of the program failed."""


class TooLateError(RunFailedError):
    """A run took longer than it may."""


@dataclass(frozen=True)
class Command:
    """The program, as it stands behind `--`."""

    target: str
    arguments: tuple[str, ...]
    is_module: bool
    root: Path
    """The folder that the scratch folder stands for."""
    working: Path
    """The working folder, which is the root or below it."""

    @classmethod
    def parsed(cls, words: Sequence[str], *, working: Path) -> Command:
        """Of `train.py args`, `-m train args`, or the same behind `python`."""
        rest = list(words)
        if rest and Path(rest[0]).name.startswith("python") and len(rest) > 1:
            del rest[0]
        is_module = bool(rest) and rest[0] == "-m"
        if is_module:
            del rest[0]
        if not rest or rest[0].startswith("-"):
            raise DeepScopeError("no program: it stands behind `--`, as in `-- train.py --epochs 1`")
        working = working.resolve()
        return cls(rest[0], tuple(rest[1:]), is_module, working, working)

    def target_in(self, folder: Path) -> str:
        """The program's file in a scratch folder; where it lies outside of the root, the file itself."""
        if self.is_module:
            return self.target
        path = self.working / self.target
        with suppress(ValueError):
            return str(folder / Path(os.path.abspath(path)).relative_to(self.root))  # noqa: PTH100  links stay links
        return str(path)

    def working_in(self, scratch: Path) -> Path:
        """The working folder in a scratch folder."""
        return scratch / self.working.relative_to(self.root)

    def check(self) -> None:
        """Raise where there is no such file."""
        if not self.is_module and not (self.working / self.target).exists():
            raise DeepScopeError(f"{self.target}: there is no such file in {self.working}")


@dataclass
class ProgramRuns:
    """Starts runs one after another; no two overlap."""

    command: Command
    deadline_s: float
    """By the monotonic clock."""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="deepscope-try-")).resolve())
    written: dict[str, None] = field(default_factory=dict)
    """Files outside of the scratch folders that runs have written."""
    number: int = 0

    def close(self) -> None:
        """Remove all scratch folders."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        return self.deadline_s - time.monotonic()

    def run(
        self,
        *,
        warmup: int,
        steps: int,
        seconds: float | None = None,
        changes: Sequence[Change] = (),
        rounding: float = 0.0,
        fill: Filler | None = None,
        longest_s: float | None = None,
    ) -> Answer:
        """The answer of one run.

        Raises:
            RunFailedError: the program failed, made no step, or took longer than `longest_s` or the budget.
        """
        self.number += 1
        scratch = self.folder / f"{self.number}"
        (fill or self._fill)(scratch)
        answer = self.folder / f"{self.number}.answer"
        request = Request(
            target=self.command.target_in(scratch),
            arguments=list(self.command.arguments),
            is_module=self.command.is_module,
            answer=str(answer),
            folder=str(scratch),
            changes=list(changes),
            warmup=warmup,
            steps=steps,
            seconds=seconds,
            rounding=rounding,
        )
        path = self.folder / f"{self.number}.request"
        path.write_bytes(msgspec.msgpack.encode(request))
        log = self.folder / f"{self.number}.log"
        limit = max(_LEAST_SECONDS, min(self.left_s, longest_s or self.left_s))
        try:
            code = self._process(path, scratch, log, limit)
            return self._checked(_read_answer(answer), code, log, scratch, limit)
        finally:
            for folder in (scratch, scratch.with_suffix(".tmp")):
                shutil.rmtree(folder, ignore_errors=True)

    def _fill(self, scratch: Path) -> ScratchFolder:
        return fill_scratch(self.command.root, scratch)

    def _process(self, request: Path, scratch: Path, log: Path, limit_s: float) -> int | None:
        """The exit code; None where it ran longer than the limit."""
        temporary = scratch.with_suffix(".tmp")
        temporary.mkdir()
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  this very interpreter
                [sys.executable, "-m", "deepscope.trials.one_run", str(request)],
                cwd=self.command.working_in(scratch),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment(os.environ, self.command, scratch, self.folder), "TMPDIR": str(temporary)},
                start_new_session=True,  # with all that it starts, it is ended as one group
            )
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return None
            finally:
                _end(process)

    def _checked(self, answer: Answer | None, code: int | None, log: Path, scratch: Path, limit_s: float) -> Answer:
        name = self.command.target
        if code is None:
            raise TooLateError(f"{name}: its steps were not done after {limit_s:.0f} s")
        if answer is None:
            raise RunFailedError(f"{name}: ended with exit code {code} before its steps were done{_tail(log)}")
        for path in answer.written:
            self.written.setdefault(path)
        if answer.error:
            text = answer.error.replace(str(scratch), str(self.command.root))
            raise RunFailedError(f"{name}: {text}")
        if not answer.steps and not answer.refused:
            raise RunFailedError(f"{name}: no training step was made in its process, so there is nothing to time")
        return answer


def environment(given: Mapping[str, str], command: Command, scratch: Path, shared: Path) -> dict[str, str]:
    """The environment of a run: recorders and loggers off; what points into the root points into the scratch folder.

    Args:
        given: this process's own.
        command: whose root the scratch folder stands for.
        scratch: the run's own.
        shared: a folder that all runs have in common, for what is compiled.
    """
    own = {name: value for name, value in given.items() if name != "PYTHONSAFEPATH"}
    paths = [
        str(_moved(Path.cwd() / one, command.root, scratch))
        for one in given.get("PYTHONPATH", "").split(os.pathsep)
        if one
    ]
    if paths:
        own["PYTHONPATH"] = os.pathsep.join(paths)
    logs = str(scratch / "loggers")
    return {
        **own,
        OFF_VARIABLE: "1",
        STANDS_FOR: str(command.root),
        "PWD": str(command.working_in(scratch)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(shared / "inductor"),
        "WANDB_MODE": "offline",
        "WANDB_DIR": logs,
        "WANDB_SILENT": "true",
        "MLFLOW_TRACKING_URI": f"file://{logs}/mlruns",
        "COMET_MODE": "disabled",
        "COMET_LOGGING_CONSOLE": "ERROR",
        "NEPTUNE_MODE": "offline",
        "CLEARML_OFFLINE_MODE": "1",
        "TENSORBOARD_LOGGING_DIR": logs,
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it with all that it started: loader workers that outlive it would disturb the next run."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _moved(path: Path, root: Path, scratch: Path) -> Path:
    path = path.resolve()
    is_ours = path == Path(__file__).resolve().parents[2]
    return scratch / path.relative_to(root) if path.is_relative_to(root) and not is_ours else path


def _read_answer(path: Path) -> Answer | None:
    """None where there is none, or half of one."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Answer)
    except (OSError, msgspec.MsgspecError):
        return None


def _tail(log: Path) -> str:
    with suppress(OSError):
        lines = [
            line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
        ]
        if lines:
            return f": {' / '.join(lines[-_LAST_LINES:])}"
    return ""


def may_write(command: Command) -> Iterator[str]:
    """Sentences on what a scratch folder does not hold back."""
    with tempfile.TemporaryDirectory(prefix="deepscope-try-") as folder:
        scratch = fill_scratch(command.root, Path(folder).resolve() / "scratch")
    yield f"each run has a scratch folder in the place of {command.root}; loggers are offline"
    linked = [one for one in scratch.linked_folders if Path(one).name not in {".git", ".venv", "venv"}]
    if linked:
        more = f" and {len(linked) - _SHOWN} more" if len(linked) > _SHOWN else ""
        yield f"too large to stand in it, and written to as they are: {', '.join(linked[:_SHOWN])}{more}"
    absolute = [one for word in command.arguments if Path(one := word.rpartition("=")[2]).is_absolute()]
    if absolute:
        yield f"absolute paths among the arguments, written to as they are: {', '.join(absolute)}"
    if command.target_in(Path("/-")) == str(command.working / command.target) and not command.is_module:
        yield f"{command.target} lies outside of this folder: what it writes beside itself stays there"
    yield "other absolute paths, network connections and ports are the program's own"
