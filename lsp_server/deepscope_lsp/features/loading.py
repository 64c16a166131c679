"""Loading profiles beside the message loop, with progress that can be cancelled."""

from __future__ import annotations

import asyncio
import gc
import uuid
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.errors import DeepScopeError, TraceError
from deepscope.printable import without_secrets
from deepscope.records import Profile, View
from deepscope.store.load import LoadRequest, cached_profile
from deepscope.store.selection import TraceSelection
from deepscope.store.worker_process import CancelledLoadError, Loader
from deepscope_lsp.engine.wording.quantities import in_message, size
from deepscope_lsp.features.editor_requests import rebind_all, refresh, tell_status

if TYPE_CHECKING:
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer


def request_for(project: Project, path: str, selection: TraceSelection | None = None) -> LoadRequest:
    """What to load of a path, or of traces that are selected already, as the settings say."""
    show = project.settings.show
    return LoadRequest(
        path=path,
        selection=selection,
        view=View(step=show.step),
        rank=show.rank,
        stage=show.stage,
        partial=show.partial,
        peaks=project.settings.peaks,
    )


async def load(server: DeepScopeServer, project: Project, request: LoadRequest) -> Profile:
    """A profile, from the cache or by reading the trace; a load under way for the same project is cancelled.

    Raises:
        CancelledLoadError: the user cancelled it, or a newer load took its place.
        DeepScopeError: as `load_profile`.
    """
    loop = asyncio.get_running_loop()
    if project.loader is not None:
        project.loader.cancel()
    loader = project.loader = Loader(request)
    try:
        profile = await loop.run_in_executor(None, cached_profile, request)
        if profile is None:
            profile = await _read(server, loader)
    except asyncio.CancelledError:  # the connection has ended
        loader.cancel()
        raise
    except DeepScopeError:
        raise
    except Exception as error:
        raise TraceError(f"{request.path}: {type(error).__name__}: {error}") from error
    finally:
        is_newest = project.loader is loader
        if is_newest:
            project.loader = None
    if not is_newest:
        raise CancelledLoadError(f"{request.path}: a newer load took its place")
    return profile


def show(
    server: DeepScopeServer,
    project: Project,
    profile: Profile,
    *,
    newer: Profile | None = None,
    previous: Profile | None = None,
) -> None:
    """Shows a loaded profile in all open documents.

    `newer` is the newest run where `profile` is another one, `previous` the run before, to compare with.
    """
    project.newer = newer
    project.show(profile, server.session.roots, previous)
    rebind_all(server)
    # A profile lives long and holds no cycles: the collector need not look through it at every full run.
    gc.freeze()
    refresh(server)
    tell_status(server, project, "ready")


async def _read(server: DeepScopeServer, loader: Loader) -> Profile:
    loop = asyncio.get_running_loop()
    progress = await _Progress.begin(server, loader)

    def report(done: int, total: int) -> None:
        loop.call_soon_threadsafe(progress.report, done, total)

    try:
        return await loop.run_in_executor(None, loader.load, report)
    finally:
        progress.end()


class _Progress:
    """`$/progress` of one load; silent where the editor shows none."""

    def __init__(self, server: DeepScopeServer, token: str | None) -> None:
        self._server = server
        self._token = token
        self._percent = -1

    @classmethod
    async def begin(cls, server: DeepScopeServer, loader: Loader) -> _Progress:
        window = server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return cls(server, None)
        token = f"deepscope-{uuid.uuid4()}"
        await server.ask(server.work_done_progress.create_async(token))
        if token not in server.work_done_progress.tokens:  # the editor does not want it
            return cls(server, None)
        server.work_done_progress.begin(
            token,
            types.WorkDoneProgressBegin(
                title="DeepScope",
                message=in_message(f"reading {without_secrets(loader.request.path)}"),
                percentage=0,
                cancellable=True,
            ),
        )
        # pygls cancels this future when the editor asks for it.
        server.work_done_progress.tokens[token].add_done_callback(
            lambda future: loader.cancel() if future.cancelled() else None
        )
        return cls(server, token)

    def report(self, done: int, total: int) -> None:
        percent = min(100, 100 * done // max(1, total))
        if self._token is None or percent <= self._percent:
            return
        self._percent = percent
        message = (
            f"{size(done)} of {size(total)}" if done < total else f"{size(total)} are read; working out what to show"
        )
        self._server.work_done_progress.report(
            self._token, types.WorkDoneProgressReport(message=message, percentage=percent)
        )

    def end(self) -> None:
        if self._token is not None:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
            self._server.work_done_progress.tokens.pop(self._token, None)
            self._token = None
