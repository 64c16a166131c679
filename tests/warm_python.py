"""A Python that has imported what programs of tests start with, of which each program is a fork: a process of its own.

Not for what depends on how a process starts: options of the interpreter, variables that are read at its start, programs
that import this later or never.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO

__all__ = ["RECORDING", "SERVING", "WarmProcess", "run_command", "run_warm"]

_TORCH = ("torch", "torch._inductor.config")
"""torch's profiler imports the second as a window opens."""
_READING = ("deepscope.analysis.build", "deepscope.trace.read", "wcwidth")
RECORDING = (*_TORCH, *_READING, "deepscope.cli.run")
"""For `deepscope run`."""
SERVING = (*_READING, "deepscope_lsp.features")
"""For the language server."""
_COMMANDS = (
    *_READING,
    *(f"deepscope.cli.{name}" for name in ("attach", "compare", "export", "ranks", "report", "servers", "trials")),
    "deepscope.dashboard.server",
    "deepscope.report.exports.tables",
    "deepscope.report.exports.call_paths",
)

_SERVER = """
import gc, importlib, json, os, runpy, socket, sys, types, warnings

for name in sys.argv[2:]:
    importlib.import_module(name)
gc.collect()
gc.freeze()  # a collection, as at the end, would write to each page of what is imported, and so copy it


def fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy has a thread of its own
        return os.fork()


asked = socket.socket(fileno=int(sys.argv[1]))
between = 0
while True:
    words, files, _, _ = socket.recv_fds(asked, 1 << 20, 4)
    while between and os.waitpid(-1, os.WNOHANG)[0]:
        between -= 1
    if not words:
        os._exit(0)
    if not fork():
        break
    between += 1
    for file in files:
        os.close(file)

# A process between tells of the end of the other, so that several may run at once.
asked.close()
ended = socket.socket(fileno=files.pop())
child = fork()
if child:
    for file in (*files, 0, 1, 2):
        os.close(file)
    ended.send(str(child).encode())
    ended.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    os._exit(0)

ended.close()
for number, file in enumerate(files):
    os.dup2(file, number)
    os.close(file)
request = json.loads(words)
os.environ.clear()
os.environ.update(request["environment"])
os.chdir(request["folder"])
if request["session"]:
    os.setsid()
sys.argv, sys.path[0] = request["arguments"], request["folder"]
for filter in request["filters"]:
    warnings._setoption(filter)  # as the interpreter's option -W
server, main = sys.modules["__main__"], types.ModuleType("__main__")
sys.modules["__main__"] = main
if request["module"]:
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
else:
    if request["script"]:
        main.__file__, sys.path[0] = request["script"], os.path.dirname(request["script"])
    exec(compile(request["program"], request["script"] or "<string>", "exec"), main.__dict__)
"""


@cache
def _server(imported: tuple[str, ...]) -> socket.socket:
    """The end of this process of the socket that a Python listens at."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", _SERVER, str(theirs.fileno()), *imported]
    # Kineto reads the variable as it is loaded: programs under test are to be silent.
    process = subprocess.Popen(
        command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env={**os.environ, "KINETO_LOG_LEVEL": "9"}
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class WarmProcess:
    """A program, a script or a module that runs; `pid`, `returncode`, `poll`, `wait` and `kill` are as `Popen`'s."""

    def __init__(
        self,
        program: str = "",
        *,
        script: Path | None = None,
        module: str = "",
        imported: tuple[str, ...] = _TORCH,
        warning_filters: tuple[str, ...] = (),
        arguments: tuple[str, ...] = (),
        folder: Path | None = None,
        environment: dict[str, str],
        new_session: bool = False,
        streams: tuple[int, int, int],
    ) -> None:
        self.args = [str(script or module or "-c"), *arguments]
        self.returncode: int | None = None
        request = {
            "program": program if script is None else script.read_text(encoding="utf-8"),
            "script": "" if script is None else str(script),
            "module": module,
            "filters": warning_filters,
            "arguments": self.args,
            "folder": str(folder or Path.cwd()),
            "environment": environment,
            "session": new_session,
        }
        self._ended, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(_server(imported), [json.dumps(request).encode()], [*streams, theirs.fileno()])
        self.pid = int(self._ended.recv(64))

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        if self.returncode is None:
            self._ended.settimeout(timeout)
            try:
                self.returncode = int(self._ended.recv(64))
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._ended.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_warm(
    program: str = "",
    *,
    script: Path | None = None,
    module: str = "",
    imported: tuple[str, ...] = _TORCH,
    warning_filters: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    folder: Path | None = None,
    timeout_s: float = 100,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs the text of a program, a script or a module, with these variables in its environment.

    Returns:
        What `subprocess.run` gives.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with ExitStack() as stack:
        nothing: IO[bytes] = stack.enter_context(open(os.devnull, "rb"))
        out, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        process = WarmProcess(
            program,
            script=script,
            module=module,
            imported=imported,
            warning_filters=warning_filters,
            arguments=arguments,
            folder=folder,
            environment={**os.environ, **environment},
            streams=(nothing.fileno(), out.fileno(), errors.fileno()),
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            process.args, code, out.read().decode(), errors.read().decode(errors="replace")
        )


def run_command(
    *arguments: str, folder: Path | None = None, timeout_s: float = 300, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`python -m deepscope` with these arguments, for all commands that import no torch."""
    return run_warm(
        module="deepscope", imported=_COMMANDS, arguments=arguments, folder=folder, timeout_s=timeout_s, **environment
    )
