"""The dashboard in TensorBoard: the tab "DeepScope", for the runs below the log directory.

The one module that imports tensorboard, which imports it through the entry point `tensorboard_plugins`. Everything else
is imported when a plug-in is made, so that nothing which is wrong with DeepScope keeps TensorBoard from starting.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin

if TYPE_CHECKING:
    from deepscope.dashboard.library import Library

NAME = "deepscope"
_LOG = logging.getLogger(__name__)
_URL = re.compile("[a-zA-Z][0-9a-zA-Z.+-]*://")

# The page stands in a frame of TensorBoard's. It opens at the address that TensorBoard's own address tells, else where
# the reader left it.
MODULE = b"""export async function render() {
  let kept = "";
  try { kept = window.sessionStorage.getItem("deepscope.address") || ""; } catch {}
  try {
    kept = new URLSearchParams(window.parent.location.hash.slice(1)).get("p.deepscope.at") || kept;
  } catch {}
  document.location.replace("index.html" + (kept.startsWith("#/") ? kept : ""));
}
"""

LOOK_SECONDS = 10.0
PATIENCE_SECONDS = 0.3
"""How often it is looked whether there are traces, and how long TensorBoard's list of tabs waits for that."""

_Start = Callable[[str, list[tuple[str, str]]], Any]


class Loader(base_plugin.TBLoader):  # type: ignore[misc]  # tensorboard is not followed by mypy
    """Makes the plug-in; where that fails TensorBoard goes on without it."""

    def load(self, context: Any) -> DeepScopePlugin | None:
        """The plug-in, or None."""
        try:
            return DeepScopePlugin(context)
        except Exception:  # noqa: BLE001  TensorBoard goes on without the tab
            _LOG.warning("DeepScope's tab could not be made", exc_info=True)
            return None


class DeepScopePlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The pages and their questions below `data/plugin/deepscope/`."""

    plugin_name = NAME

    def __init__(self, context: Any) -> None:
        from deepscope.dashboard.application import Application
        from deepscope.dashboard.library import Library
        from deepscope.dashboard.server import POLICY_IN_FRAMES, Pages

        super().__init__(context)
        flags = context.flags
        folders = log_folders(
            context.logdir or getattr(flags, "logdir", None) or "", getattr(flags, "logdir_spec", None) or ""
        )
        self._library = Library(folders)
        self._presence = Presence(self._library)
        # Whoever may frame TensorBoard (a notebook, an editor) frames its tabs, too.
        self._pages = Pages(Application(self._library), policy=POLICY_IN_FRAMES, host="tensorboard")

    def get_plugin_apps(self) -> dict[str, Any]:
        """What answers, by route."""
        names = ("/index.html", "/dashboard.js", "/dashboard.css", "/api/*")
        return {"/index.js": _module, **dict.fromkeys(names, self._served)}

    def is_active(self) -> bool:
        """Whether a trace was found; TensorBoard asks often, and the answer may be some seconds old."""
        return self._presence.is_there()

    def frontend_metadata(self) -> Any:
        """The tab."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="DeepScope", disable_reload=True)

    def _served(self, environ: dict[str, Any], start: _Start) -> list[bytes]:
        path = str(environ.get("PATH_INFO", "")).partition(f"/plugin/{NAME}")[2]
        return self._pages({**environ, "PATH_INFO": path}, start)


class Presence:
    """Whether a library has traces, looked up by a thread: a log directory may be large, or far away."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = Lock()
        self._look: Thread | None = None
        self._looked_at = float("-inf")
        self._is_there = False

    def is_there(self) -> bool:
        """What is known, after waiting for a moment."""
        if not self._library.paths:
            return False
        with self._lock:
            if self._look is None and time.monotonic() - self._looked_at > LOOK_SECONDS:
                self._look = Thread(target=self._looked, name="deepscope-look", daemon=True)
                self._look.start()
            look = self._look
        if look is not None:
            look.join(PATIENCE_SECONDS)
        return self._is_there

    def _looked(self) -> None:
        from deepscope.errors import DeepScopeError

        try:
            self._is_there = bool(self._library.runs())
        except DeepScopeError:
            self._is_there = False
        except Exception:  # noqa: BLE001  TensorBoard goes on without the tab
            _LOG.warning("the log directory could not be looked through", exc_info=True)
        finally:
            with self._lock:
                self._look = None
                self._looked_at = time.monotonic()


def log_folders(logdir: str, logdir_spec: str = "") -> list[str]:
    """The folders of `--logdir`, or those of `--logdir_spec` (`name:path,path`), as TensorBoard takes them apart."""
    words = [logdir] if logdir else [_without_name(word) for word in logdir_spec.split(",")]
    return [
        word if _URL.match(word) else os.path.realpath(os.path.expanduser(word))  # noqa: PTH111  as TensorBoard does
        for word in words
        if word.strip()
    ]


def _without_name(word: str) -> str:
    is_path = ":" not in word or word.startswith("/") or _URL.match(word) or os.path.splitdrive(word)[0]
    return word if is_path else word.partition(":")[2]


def _module(environ: dict[str, Any], start: _Start) -> list[bytes]:
    del environ
    start(
        "200 OK",
        [
            ("Content-Type", "text/javascript; charset=utf-8"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-cache"),
            ("Content-Length", str(len(MODULE))),
        ],
    )
    return [MODULE]
