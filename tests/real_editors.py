"""Editors run for real, headless: the project that they open, and the configuration of docs/editors.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from lsp_profiles import SOURCE, record

__all__ = ["RealEditor", "documented"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "editors.md"
PATIENCE_SECONDS = 180


def documented(language: str, words: str) -> str:
    """The first block of a language in docs/editors.md that holds certain words: what is tested is what is told."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if words in block)


class RealEditor:
    """A project with a trace, a `deepscope` command, and folders of the editor's own, all in one place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = folder / "project"
        (self.root / ".git").mkdir(parents=True)
        self.file = self.root / "train.py"
        self.file.write_text(SOURCE, encoding="utf-8")
        record(self.root)
        # The documented command is `deepscope lsp`; the one of this environment is the one to be tested.
        commands = folder / "bin"
        commands.mkdir()
        command = commands / "deepscope"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deepscope "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        self.out = folder / "out.json"
        own = {name: str(folder / name.lower()) for name in
               ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}  # fmt: skip
        for path in own.values():
            Path(path).mkdir()
        self._environment = {
            **os.environ,
            **own,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "DEEPSCOPE_CACHE_DIR": str(folder / "cache"),
            "DEEPSCOPE_TEST_FILE": str(self.file),
            "DEEPSCOPE_TEST_OUT": str(self.out),
        }

    def write(self, name: str, text: str) -> Path:
        """A file beside the project."""
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, command: str, *arguments: str) -> str:
        """Runs an editor to its end; answers what it wrote into `out`."""
        found = shutil.which(command)
        assert found is not None
        done = subprocess.run(
            [found, *arguments], env=self._environment, cwd=self.root, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return self.out.read_text(encoding="utf-8")
