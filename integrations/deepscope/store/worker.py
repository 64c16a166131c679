"""A process that reads traces for another one: `python -m deepscope.store.worker`, requests in, profiles out."""

from __future__ import annotations

import os
import sys
from typing import IO

from deepscope.errors import DeepScopeError
from deepscope.store.files import TraceFile
from deepscope.store.read import read_profile
from deepscope.store.wire import Done, Failed, Request, Step, receive, send

__all__ = ["serve"]


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests one after another until there are no more."""
    while (request := receive(requests, Request)) is not None:
        send(answers, _answer(request, answers))


def _answer(request: Request, answers: IO[bytes]) -> Done | Failed:
    file = TraceFile(request.path, request.size_bytes, request.mtime_ns, request.token)
    try:
        profile = read_profile(
            file,
            step=request.step,
            partial=request.partial,
            cache=request.cache,
            progress=lambda done, _: send(answers, Step(done)),
        )
    except DeepScopeError as error:
        return Failed(type(error).__name__, str(error))
    except MemoryError:
        return Failed("MemoryError", "")
    return Done(profile)


def main() -> None:
    """Over standard input and output; whatever else would be printed goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, answers)
    except (BrokenPipeError, KeyboardInterrupt):
        # Nobody waits for the answer any more.
        os._exit(1)


if __name__ == "__main__":
    main()
