"""What libraries of remote stores and clusters log goes to a file: the command itself says in one line what failed."""

from __future__ import annotations

import os
from collections.abc import Sequence

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
"""By which Dask's own programs find a scheduler."""

_READING = frozenset({"compare", "export", "ranks", "report", "view"})
"""The commands that run no program of the user's, whose logs are its own."""
_STORES = ("adlfs", "aiobotocore", "aiohttp", "asyncio", "azure", "botocore", "fsspec", "gcsfs", "s3fs")
_CLUSTER = ("distributed", "tornado")


def keep_apart(arguments: Sequence[str]) -> None:
    """Sends these logs to `libraries.log` in the cache folder where the arguments name a remote store or a cluster."""
    if not arguments or arguments[0] not in _READING:
        return
    has_cluster = bool(os.environ.get(SCHEDULER_VARIABLE))
    if not has_cluster and not any("://" in one for one in arguments):
        return
    import logging.config

    from deepscope.store.cache import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(folder, os.W_OK)
    except OSError:
        is_writable = False
    handler = (
        {"class": "logging.FileHandler", "filename": str(folder / "libraries.log"), "delay": True, "encoding": "utf-8"}
        if is_writable
        else {"class": "logging.NullHandler"}
    )
    settings = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"kept": handler},
        "loggers": {name: {"handlers": ["kept"], "propagate": False} for name in (*_STORES, *_CLUSTER)},
    }
    logging.config.dictConfig(settings)
    if has_cluster:
        try:
            import dask
        except ImportError:
            return
        dask.config.set({"logging": settings})  # `distributed` sets up its loggers anew when it is imported
