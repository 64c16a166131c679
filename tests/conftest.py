"""What all tests share: nothing is read from or left in the user's own folders."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def repository() -> Path:
    """The root of the project."""
    return Path(__file__).resolve().parents[1]
