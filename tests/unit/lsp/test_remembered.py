"""What is remembered of a workspace folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepscope.store.cache import cache_folder
from deepscope_lsp.engine.project import Remembered


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path))


def test_names_that_are_not_utf8_are_remembered() -> None:
    root = os.fsdecode(b"/home/r\xff")
    remembered = Remembered(root)
    remembered.memory.trace = f"{root}/trace.json"
    remembered.save()
    assert Remembered(root).memory == remembered.memory
    assert len(list((cache_folder() / "editor").iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b'{"root": "/home/r", "hidden": 1}', b"\xff", b'"text"'])
def test_a_file_that_is_not_understood_is_forgotten(content: bytes) -> None:
    remembered = Remembered("/home/r")
    remembered.save()
    (file,) = (cache_folder() / "editor").iterdir()
    file.write_bytes(content)
    assert Remembered("/home/r").memory == remembered.memory
