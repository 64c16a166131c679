"""Traces read by the workers of a Dask cluster."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from deepscope.errors import DeepScopeError, MissingExtraError, NoTraceError, OptionError, TraceError, remake
from deepscope.records import PROFILE_FORMAT
from deepscope.store.cache import digest, prune
from deepscope.store.files import TraceFile, is_reached_by_others, own_settings, remote_access
from deepscope.store.single_trace import (
    OnAnswer,
    RankRequest,
    ReadAnswer,
    ReadRequest,
    answer,
    kept_answer,
    trace_error,
)
from deepscope.trace.kineto.remote import is_url

CONNECT_SECONDS = 10
WORKERS_SECONDS = 60
"""How long a cluster without workers is waited for: some start them when there is work."""
_RETRIES = 1
_PRUNED_EVERY = 64
_KEPT = count()
"""Traces that this process has read for others and kept; nobody else may ever remove what is too much."""
_MOST_GREETING_BYTES = 1 << 20
_LOST = frozenset({"FutureCancelledError", "CancelledError"})
"""What the client says of a task when its scheduler is gone."""


class _WorkerAnswer(msgspec.Struct):
    """What a worker says of a request: a record, an error, or its version where that is another one."""

    body: bytes = b""
    error: str = ""
    arguments: list[Any] = []
    version: str = ""
    host: str = ""


def answers_of_cluster(address: str, requests: Sequence[ReadRequest], *, got: OnAnswer) -> None:
    """Has the workers answer; what lies in stores that this process alone can reach gets no answer.

    Raises:
        MissingExtraError: dask.distributed is not installed here.
        OptionError: the scheduler cannot be reached, has no workers, or workers without this version of this package.
    """
    settings = own_settings([request.file for request in requests])
    if settings is None:
        return
    with _connected(address) as (client, as_completed):
        own = _version()
        places: dict[str, int] = {}
        futures = []
        for place, request in enumerate(requests):
            if not is_reached_by_others(request.file):
                continue
            try:
                body = msgspec.msgpack.encode(RankRequest(request, settings))
            except UnicodeEncodeError as error:
                got(place, trace_error(request.file, error))
                continue
            key = f"deepscope-{digest(body).hex()}"
            places[key] = place
            futures.append(client.submit(_task(), body, own, key=key, retries=_RETRIES, pure=True))
        try:
            _wait_for_workers(client, address)
            for future in as_completed(futures, loop=client.loop):
                place = places[future.key]
                got(place, _answer_of(future, requests[place].file, address, own))
                future.release()
        finally:  # also when interrupted: what waits is not begun
            with suppress(Exception):
                client.cancel(futures)


def answer_on_worker(request: bytes, version_here: str) -> bytes:
    """What a worker does: the answer to a request, from its own cache where that has it."""
    import platform

    own = _version()
    if own != version_here:
        return msgspec.msgpack.encode(_WorkerAnswer(version=own, host=platform.node()))
    asked = msgspec.msgpack.decode(request, type=RankRequest)
    try:
        with remote_access(asked.settings):
            body = kept_answer(asked.request)
            if body is None:
                body = answer(asked.request)
                if asked.request.cache and next(_KEPT) % _PRUNED_EVERY == 0:
                    prune()
        there = _WorkerAnswer(body=body, host=platform.node())
    except (DeepScopeError, MemoryError) as error:
        failure = error if isinstance(error, DeepScopeError) else trace_error(asked.request.file, error)
        there = _WorkerAnswer(error=type(failure).__name__, arguments=list(failure.args), host=platform.node())
    return msgspec.msgpack.encode(there)


def _task() -> Callable[[bytes, str], bytes]:
    """`answer_on_worker` for a worker that may not have this package.

    A nested function is sent by its code, not its name; a name that cannot be imported would end the worker.
    """

    def read_trace(body: bytes, version_here: str) -> bytes:
        from importlib import import_module

        answered: bytes = import_module("deepscope.store.dask_cluster").answer_on_worker(body, version_here)
        return answered

    return read_trace


def _version() -> str:
    return f"{version('deepscope')} (profiles {PROFILE_FORMAT})"


@contextmanager
def _connected(address: str) -> Iterator[tuple[Any, Any]]:
    """A client of the scheduler, not the process's default one, closed at the end; and `as_completed`."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingExtraError("dask.distributed", "dask") from error
    try:
        _check_address(address)
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="deepscope")
    except (OSError, ValueError, TypeError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        reason = said.splitlines()[0]
        raise OptionError("scheduler", address, f"no Dask scheduler could be reached there ({reason})") from None
    try:
        yield client, as_completed
    finally:
        with suppress(Exception):
            client.close(timeout=2)


def _check_address(address: str) -> None:
    """Raises `OSError` where no scheduler listens: a client would try again and again, wait for a word from somebody
    else without end, and take the words of a third for the length of a message."""
    from distributed.comm.addressing import get_address_host_port, parse_address

    scheme = parse_address(address)[0]
    if scheme not in {"tcp", "tls"}:
        return
    with socket.create_connection(get_address_host_port(address), timeout=CONNECT_SECONDS) as connection:
        if scheme == "tls":
            return
        try:
            length = connection.recv(8)  # a scheduler speaks first, and of each message its length
        except TimeoutError:
            problem = f"what listens there says nothing for {CONNECT_SECONDS} s; is it the port of Dask's dashboard?"
            raise OSError(problem) from None
    if not length:
        raise OSError("what listens there ends the connection at once")
    if int.from_bytes(length, sys.byteorder) > _MOST_GREETING_BYTES:
        raise OSError("something else listens there")


def _wait_for_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except (OSError, TimeoutError) as error:
        problem = (
            f"the cluster has no workers, and got none within {WORKERS_SECONDS} s; start some: dask worker {address}"
        )
        raise OptionError("scheduler", address, problem) from error


def _answer_of(future: Any, file: TraceFile, address: str, own: str) -> ReadAnswer:
    try:
        there = msgspec.msgpack.decode(future.result(), type=_WorkerAnswer)
    except Exception as problem:  # noqa: BLE001  whatever the cluster says of a task
        return _error_of_task(problem, file, address)
    if there.version:
        raise OptionError(
            "scheduler",
            address,
            f"the worker on {there.host} has deepscope {there.version}, this machine has {own}; "
            "install the same version on both",
        )
    if not there.error:
        return there.body
    error = remake(there.error, there.arguments)
    if isinstance(error, NoTraceError) and not is_url(file.path) and Path(file.path).exists():
        return NoTraceError(
            f"{file.path}: is not there on the cluster's worker on {there.host}; put the run into a folder that all "
            "machines share under the same path, or into a store (s3://…)"
        )
    return error


def _error_of_task(error: Exception, file: TraceFile, address: str) -> TraceError:
    name = type(error).__name__
    if name in _LOST:
        problem = "the connection was lost before all was read; run again: what the cache has is not read again"
        raise OptionError("scheduler", address, problem) from None
    if isinstance(error, ImportError):
        lacking = f"a worker cannot import what it needs ({error})"
        problem = f"{lacking}; run there: pip install 'deepscope=={version('deepscope')}'"
        raise OptionError("scheduler", address, problem) from error
    if name == "KilledWorker":
        return TraceError(f"{file.path}: each worker of the cluster that read it died (not enough memory?)")
    return TraceError(f"{file.path}: the cluster could not read it: {name}: {error}")
