"""What several integration tests start from."""

from pathlib import Path

import pytest

from lsp_profiles import SOURCE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of one file, of which `lsp_profiles` has the profiles."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SOURCE, encoding="utf-8")
    return folder
