"""A Python that has imported torch, of which each program of a test is a fork: a process of its own, imported already.

Not for what depends on how a process starts: options of the interpreter, variables that are read at its start, programs
that import torch later or never.
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
from functools import cache
from pathlib import Path

__all__ = ["run_warm"]

_SERVER = """
import json, os, runpy, socket, sys, types, warnings

import torch
import torch._inductor.config  # torch's profiler imports it as a window opens

asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    words, files, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    if not words:
        os._exit(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy has a thread of its own
        child = os.fork()
    if not child:
        break
    for file in files:
        os.close(file)
    asked.send(str(child).encode())
    asked.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())

asked.close()
for number, file in enumerate(files):
    os.dup2(file, number)
    os.close(file)
request = json.loads(words)
os.environ.clear()
os.environ.update(request["environment"])
os.chdir(request["folder"])
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
def _server() -> socket.socket:
    """The end of this process of the socket that its Python listens at."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", _SERVER, str(theirs.fileno())]
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


def run_warm(
    program: str = "",
    *,
    script: Path | None = None,
    module: str = "",
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
    server = _server()
    called = [str(script or module or "-c"), *arguments]
    request = {
        "program": program if script is None else script.read_text(encoding="utf-8"),
        "script": "" if script is None else str(script),
        "module": module,
        "filters": warning_filters,
        "arguments": called,
        "folder": str(folder or Path.cwd()),
        "environment": {**os.environ, **environment},
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, open(os.devnull, "rb") as nothing:
        files = [file.fileno() for file in (nothing, out, errors)]
        socket.send_fds(server, [json.dumps(request).encode()], files)
        child = int(server.recv(64))
        server.settimeout(timeout_s)
        try:
            code = int(server.recv(64))
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            server.settimeout(None)
            server.recv(64)
            raise subprocess.TimeoutExpired(called, timeout_s) from None
        finally:
            server.settimeout(None)
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(called, code, out.read().decode(), errors.read().decode(errors="replace"))
