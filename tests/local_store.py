"""Files of this machine as a store that is reached by URLs, which stands in for a remote one."""

from __future__ import annotations

import fsspec
import pytest

__all__ = ["local_store"]

local_store = pytest.mark.skipif(
    "local" not in fsspec.available_protocols(), reason=f"fsspec {fsspec.__version__} has no store named local"
)
"""Marks a test that names files as `local:///…`."""
