"""Start, settings and workspace folders."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.store.files import NAMED_TRACE_ENDINGS
from deepscope.trace.format.run_account import ENDINGS_BESIDE
from deepscope_lsp.engine.discovery import patterns_of
from deepscope_lsp.engine.settings import read_settings
from deepscope_lsp.engine.source_files import to_path, to_uri
from deepscope_lsp.features.editor_requests import rebind_all, refresh
from deepscope_lsp.positions import Units

if TYPE_CHECKING:
    from deepscope_lsp.features.watching import Watcher
    from deepscope_lsp.server import DeepScopeServer

SECTION = "deepscope"
COME_AND_GO = types.WatchKind.Create | types.WatchKind.Delete
RELOADING = ("traces", "show", "peaks", "watch_seconds")


def register(server: DeepScopeServer, watcher: Watcher) -> None:
    """Registers `initialize`, `initialized`, `shutdown`, `didChangeConfiguration`, `didChangeWorkspaceFolders`."""
    configuration = ClientSettings(server, watcher)

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        roots = [path for uri in folders if (path := to_path(uri)) is not None]
        if not roots and params.root_path:
            roots = [params.root_path]
        server.session.set_roots(roots)
        configuration.options = params.initialization_options

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        server.units = Units(server.server_capabilities.position_encoding)
        server.start(_begin(server, watcher, configuration))

    @server.feature(types.SHUTDOWN)
    def shutdown(_: None) -> None:
        server.end()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        server.start(configuration.change(params.settings))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_workspace_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        removed = {to_path(folder.uri) for folder in params.event.removed}
        added = [path for folder in params.event.added if (path := to_path(folder.uri)) is not None]
        session = server.session
        for project in session.projects:
            if project.root in removed and project.loader is not None:
                project.loader.cancel()
        session.set_roots([root for root in session.roots if root not in removed] + added)
        for project in session.projects:
            project.map_paths(session.roots)
            if project.newer is not None:  # its code may be here now
                project.stamps = ()
        rebind_all(server)
        refresh(server)
        watcher.look()
        if added and configuration.can_pull:
            server.start(configuration.change(None))


class ClientSettings:
    """The settings, from `initializationOptions` and then from the editor's configuration."""

    def __init__(self, server: DeepScopeServer, watcher: Watcher) -> None:
        self._server = server
        self._watcher = watcher
        self.options: object = None

    async def change(self, pushed: object) -> None:
        """Takes changed settings in: asked for where the editor can be asked, else as it pushed them."""
        if self.can_pull:
            self.apply(*await self.pull())
        else:
            self.apply(pushed)

    @property
    def can_pull(self) -> bool:
        """Whether the editor answers `workspace/configuration`."""
        workspace = self._server.client_capabilities.workspace
        return workspace is not None and bool(workspace.configuration)

    async def pull(self) -> tuple[object, dict[str, object]]:
        """The editor's settings (None where it has none), and those of each workspace folder by its path."""
        server = self._server
        roots = server.session.roots
        items = [
            types.ConfigurationItem(section=SECTION),
            *(types.ConfigurationItem(scope_uri=to_uri(root), section=SECTION) for root in roots),
        ]
        answers = await server.ask(server.workspace_configuration_async(types.ConfigurationParams(items)))
        if not answers:
            return None, {}
        return answers[0], dict(zip(roots, answers[1:], strict=False))

    def apply(self, given: object, folders: Mapping[str, object] = MappingProxyType({})) -> None:
        """Makes settings the current ones: of all the workspace, and of its folders by their paths.

        Bad values are named, each once.
        """
        server, session = self._server, self._server.session
        before = session.settings
        session.settings, problems = read_settings(self.options, given)
        earlier = [project.settings for project in session.projects]
        for project in session.projects:
            project.settings = session.settings
            if project.root in folders:
                project.settings, more = read_settings(self.options, folders[project.root])
                problems += more
        for problem in problems:
            server.say(types.MessageType.Warning, f"DeepScope: {problem}")
        pairs = list(zip(session.projects, earlier, strict=True))
        remapped = [project for project, old in pairs if project.settings.path_mappings != old.path_mappings]
        for project in remapped:
            project.map_paths(session.roots)
            if project.newer is not None:  # its code may be found now
                project.stamps = ()
        if remapped:
            rebind_all(server)
        reloading = [
            project
            for project, old in pairs
            if any(getattr(project.settings, name) != getattr(old, name) for name in RELOADING)
        ]
        for project in reloading:
            project.stamps = ()
            self._watcher.forget(project)
        if reloading or remapped:
            self._watcher.look()
        if session.settings != before or any(project.settings != old for project, old in pairs):
            refresh(server)


async def _begin(server: DeepScopeServer, watcher: Watcher, configuration: ClientSettings) -> None:
    await configuration.change(None)
    server.start(_register_dynamically(server, watcher))
    await watcher.run()


async def _register_dynamically(server: DeepScopeServer, watcher: Watcher) -> None:
    workspace = server.client_capabilities.workspace
    if workspace is None:
        return
    registrations = []
    if workspace.did_change_configuration is not None and workspace.did_change_configuration.dynamic_registration:
        registrations.append(
            types.Registration(
                "deepscope-configuration",
                types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                types.DidChangeConfigurationRegistrationOptions(section=SECTION),
            )
        )
    if workspace.did_change_watched_files is not None and workspace.did_change_watched_files.dynamic_registration:
        entries = [one for project in server.session.projects for one in project.settings.traces]
        watchers = [
            *(types.FileSystemWatcher(f"**/*{ending}") for ending in (*NAMED_TRACE_ENDINGS, *ENDINGS_BESIDE)),
            *(types.FileSystemWatcher(one, COME_AND_GO) for one in patterns_of(entries)),
        ]
        registrations.append(
            types.Registration(
                "deepscope-traces",
                types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                types.DidChangeWatchedFilesRegistrationOptions(watchers),
            )
        )
    if not registrations:
        return
    watches = any(one.id == "deepscope-traces" for one in registrations)
    params = types.RegistrationParams(registrations)
    # The answer is null, so only an exception would tell that the editor refuses.
    is_done = await server.ask(_done(server.client_register_capability_async(params)))
    watcher.editor_watches = bool(is_done) and watches


async def _done(request: Awaitable[object]) -> bool:
    await request
    return True
