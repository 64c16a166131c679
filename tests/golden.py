"""Snapshots under tests/data/golden that a reviewer can read."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "golden"


def matches_golden(text: str, name: str) -> None:
    """Asserts that `text` is the snapshot's; with DEEPSCOPE_REGENERATE=1 writes it anew instead."""
    path = FOLDER / name
    if os.environ.get("DEEPSCOPE_REGENERATE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), (
        f"no snapshot {name}: run DEEPSCOPE_REGENERATE=1 python -m pytest {Path(__file__).parent.name}"
    )
    assert text == path.read_text(encoding="utf-8"), f"differs from {name}; DEEPSCOPE_REGENERATE=1 writes it anew"
