"""The tools that run the user's program: `deepscope run`, `try` and `verify` as a child, bounded in time and output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import anyio
from anyio.abc import Process
from pydantic import Field

from deepscope.errors import OptionError, ProgramError
from deepscope.mcp_server.answers import EndedAnswer
from deepscope.mcp_server.served_folders import RunReader, ServedFolders
from deepscope.report.run_verdict import run_verdict
from deepscope.report.terminal import cut_end

MOST_SECONDS = 1800
KEPT_BYTES = 64 << 10
"""Of the output's end."""
LINES = 40
WIDTH = 160
"""Lines of it that are shown, and cells of each."""
GRACE_SECONDS = 10
BUDGET = 0.8
"""The part of its time in which `try` and `verify` begin runs: the last one is to end, too."""

Program = Annotated[
    list[str],
    Field(description='The program and its arguments: ["train.py", "--epochs", "1"], or ["-m", "package.train"].'),
]
Timeout = Annotated[int, Field(description="Seconds until it is stopped.", ge=1, le=MOST_SECONDS)]


class ProgramTools:
    """Runs of programs below the current folder, one at a time."""

    def __init__(self, folders: ServedFolders, reader: RunReader) -> None:
        self._folders = folders
        self._reader = reader
        self._is_running = False

    async def record(
        self,
        program: Program,
        whole: Annotated[bool, Field(description="From start to end: for a program without an optimizer.")] = False,
        timeout_s: Timeout = 300,
    ) -> EndedAnswer:
        """Run a program to its end as Python would, and record some of its training steps. Keep it short by its own
        arguments. Other work on the machine makes times rough."""
        words = ["run", "--quiet", "--folder", self._folders.first, *(["--whole"] if whole else [])]
        before = {trace.file for run in self._folders.runs() for trace in run.run.traces}
        ended = await self._ended([*words, *_checked(program)], timeout_s)
        new = next((run for run in self._folders.runs() if before.isdisjoint(one.file for one in run.run.traces)), None)
        if new is None:
            return ended
        profile = await anyio.to_thread.run_sync(self._reader.profile, new.path)
        return EndedAnswer(
            **ended.model_dump(exclude={"path", "verdict", "next"}),
            path=new.path,
            verdict=run_verdict(profile).sentence,
            next=f"overview(path={new.path!r})",
        )

    async def try_remedy(
        self,
        program: Program,
        findings: Annotated[list[str], Field(description="Codes of findings (DS003); none for all that apply.")],
        timeout_s: Timeout = 600,
    ) -> EndedAnswer:
        """Apply the remedies of findings from outside, in a scratch folder, and say what each gains and whether the
        losses stay the same. The program runs again and again; no file is changed."""
        for one in findings:
            if not re.fullmatch(r"\w[\w-]*", one):
                raise OptionError("findings", one, "is no code such as DS003")
        return await self._ended(["try", *findings, *_budget(timeout_s), "--", *_checked(program)], timeout_s)

    async def verify(
        self,
        program: Program,
        before: Annotated[str, Field(description="A revision of git (HEAD), or a copy of the program's file.")],
        timeout_s: Timeout = 600,
    ) -> EndedAnswer:
        """Run the program as it was before a change and as it is now, in turn, and say whether it is faster and its
        losses are the same. Exit code 3: slower, or other results; 1: the program fails."""
        return await self._ended(
            ["verify", f"--before={before}", *_budget(timeout_s), "--", *_checked(program)], timeout_s
        )

    async def _ended(self, words: Sequence[str], timeout_s: int) -> EndedAnswer:
        if self._is_running:
            raise ProgramError(
                "another program runs: two at a time would slow each other; call again when it has ended"
            )
        self._is_running = True
        try:
            code, output = await _run(words, timeout_s)
        finally:
            self._is_running = False
        lines = [line for line in output.splitlines() if line.strip()]
        # What a recorded program prints stands among the lines of `run`, and says nothing of a next step.
        steps = [line.removeprefix("next: ") for line in lines if line.startswith("next: ") and words[0] != "run"]
        return EndedAnswer(
            command=["deepscope", *words],
            exit_code=code,
            stopped_after_s=timeout_s if code is None else None,
            output=[cut_end(line, WIDTH) for line in lines[-LINES:]],
            shown=f"the last {min(LINES, len(lines)):,} of {len(lines):,} lines shown",
            next="give it a larger timeout_s, or shorten the program" if code is None else "".join(steps[-1:]),
        )


def _budget(timeout_s: int) -> list[str]:
    return ["--yes", "--budget", f"{BUDGET * timeout_s:.0f}s"]


def _checked(program: Sequence[str]) -> Sequence[str]:
    """The words of a program below the current folder.

    Raises:
        ProgramError: it is none.
    """
    here = Path.cwd().resolve()
    is_module = program[:1] == ["-m"]
    name = "".join(program[is_module : is_module + 1])
    path = name.replace(".", "/") if is_module else name
    files = [here / f"{path}.py", here / path / "__main__.py"] if is_module else [here / path]
    if not name or name.startswith("-") or not any(_is_below(one, here) for one in files):
        raise ProgramError(
            f"{name or 'no program'}: give a Python file below {here} and its arguments, or -m and a module there"
        )
    return program


def _is_below(path: Path, folder: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(folder)
    except (OSError, ValueError, RuntimeError):
        return False


async def _run(words: Sequence[str], timeout_s: int) -> tuple[int | None, str]:
    """The exit code, None where its time was up, and the end of what the command writes."""
    kept = bytearray()
    process = await anyio.open_process(
        [sys.executable, "-m", "deepscope", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    has_ended = False
    try:
        with anyio.move_on_after(timeout_s):
            async for piece in process.stdout:
                kept += piece
                del kept[:-KEPT_BYTES]
            await process.wait()
            has_ended = True
    finally:
        with anyio.CancelScope(shield=True):
            if not has_ended:
                await _stop(process)
            await process.aclose()
    return process.returncode if has_ended else None, kept.decode(errors="replace")


async def _stop(process: Process) -> None:
    """Interrupt it, so that it ends what it has started in sessions of their own; kill what is left after a while."""
    _signal(process, signal.SIGINT)
    with anyio.move_on_after(GRACE_SECONDS):
        await process.wait()
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _signal(process: Process, number: signal.Signals) -> None:
    """To it and all that it has started in its session."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()
