"""docs/architecture.md and `.ci/run` name files and folders that are there."""

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


def test_every_test_that_ci_selects_is_there(repository: Path) -> None:
    text = (repository / ".ci" / "run").read_text(encoding="utf-8")
    named = re.findall(r"\b(tests/[\w/.]+)(?:\{([\w,]+)\}([\w.]+))?", text)
    paths = [f"{head}{one}{tail}" for head, several, tail in named for one in several.split(",")]
    assert len(paths) > 15
    assert [one for one in paths if not (repository / one).exists()] == []
