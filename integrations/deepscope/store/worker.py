"""A process that reads traces for another one: `python -m deepscope.store.worker`, requests in, profiles out."""

from __future__ import annotations

import os
from typing import IO

from deepscope.errors import DeepScopeError
from deepscope.store.files import TraceFile
from deepscope.store.read import read_profile
from deepscope.store.wire import Done, Failed, Request, Step, decode_request, encode
from deepscope.trace.process import own_pipes, read_message, write_message

__all__ = ["serve"]


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests one after another until there are no more."""
    while (body := read_message(requests)) is not None:
        write_message(answers, encode(_answer(decode_request(body), answers)))


def _answer(request: Request, answers: IO[bytes]) -> Done | Failed:
    file = TraceFile(request.path, request.size_bytes, request.mtime_ns, request.token)
    try:
        profile = read_profile(
            file,
            step=request.step,
            partial=request.partial,
            cache=request.cache,
            workers=0,
            progress=lambda done, _: write_message(answers, encode(Step(done))),
        )
    except DeepScopeError as error:
        return Failed(type(error).__name__, list(error.args))
    except MemoryError:
        return Failed("MemoryError", [])
    return Done(profile)


def main() -> None:
    """Over standard input and output."""
    try:
        serve(*own_pipes())
    except (BrokenPipeError, KeyboardInterrupt):
        # Nobody waits for the answer any more.
        os._exit(1)


if __name__ == "__main__":
    main()
