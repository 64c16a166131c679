"""docs/architecture.md names files and folders that are there."""

from __future__ import annotations

import re
from pathlib import Path

LIBRARY = ("", "trace", "trace/kineto", "capture", "capture/lines", "analysis", "analysis/ownership")
ROOTS = ("", "lsp_server/deepscope_lsp", *(f"integrations/deepscope/{folder}" for folder in LIBRARY))


def test_every_file_that_the_walk_names_is_there(repository: Path) -> None:
    text = (repository / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## From a kernel")[2]
    named = set(re.findall(r"`([\w./-]+(?:\.py|/))`", text))
    assert len(named) > 40
    gone = [name for name in sorted(named) if not any((repository / root / name).exists() for root in ROOTS)]
    assert gone == []


def test_every_package_stands_in_the_map(repository: Path) -> None:
    text = (repository / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## From a kernel")[0]
    house = repository / "integrations" / "deepscope"
    packages = {path.parent.relative_to(house) for path in house.rglob("__init__.py")} - {Path()}
    assert [str(one) for one in sorted(packages) if f"{one.name}/ " not in text] == []
