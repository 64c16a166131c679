"""How a process reaches remote stores, to be handed to another one: fsspec's settings; its environment goes by itself.

A store that the caller's own code made (`memory://`, a class registered for a protocol) is reached by the caller alone.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec

from deepscope.store.files import TraceFile
from deepscope.trace.kineto.remote import is_url, reached_by

_OF_ONE_PROCESS = frozenset({"memory"})


class RemoteSettings(msgspec.Struct, frozen=True):
    """What `fsspec.config` holds, from its files and from code, as JSON."""

    fsspec: str = "{}"


def own_settings(files: Sequence[TraceFile]) -> RemoteSettings | None:
    """This process's; None where some cannot be handed over (an object among the options, say)."""
    if not any(is_url(file.path) for file in files):
        return RemoteSettings()
    import fsspec

    try:
        return RemoteSettings(json.dumps(fsspec.config.conf))
    except (TypeError, ValueError):
        return None


def using(settings: RemoteSettings) -> AbstractContextManager[None]:
    """Within it this thread reaches remote stores so. Nothing of the process is changed."""
    return reached_by(json.loads(settings.fsspec))


def is_reached_by_others(file: TraceFile) -> bool:
    """Whether another process of this machine can open the file by its path alone."""
    if not is_url(file.path):
        return True
    return all(_is_fsspec_own(part) for part in file.path.split("::"))


def _is_fsspec_own(part: str) -> bool:
    """Whether a link of a URL's chain has the class that fsspec itself has for its protocol, or is a local path."""
    from fsspec.registry import get_filesystem_class, known_implementations

    protocol, _, rest = part.partition("://")
    if not rest and protocol not in known_implementations:
        return True
    known = known_implementations.get(protocol)
    if known is None or protocol in _OF_ONE_PROCESS:
        return False
    module, _, name = known["class"].rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None) is get_filesystem_class(protocol)
    except (ImportError, ValueError):
        return False
