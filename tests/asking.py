"""Questions to the dashboard's application, asked until they are answered."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from deepscope.dashboard.application import Application
from deepscope.dashboard.library import Library

__all__ = ["Asking"]

MOST_SECONDS = 120


class Asking:
    """An application of the traces below some paths."""

    def __init__(self, *paths: Path) -> None:
        self.library = Library([str(path) for path in paths])
        self._application = Application(self.library)

    def status(self, name: str, **words: Any) -> tuple[int, Any]:
        """The status of the answer, and its JSON."""
        query = {key: str(value) for key, value in words.items()}
        end = time.monotonic() + MOST_SECONDS
        while time.monotonic() < end:
            reply = self._application.answer(name, query)
            if reply.status != 202:
                return reply.status, json.loads(reply.body)
        raise AssertionError(f"{name} was not answered in {MOST_SECONDS} seconds")

    def __call__(self, name: str, **words: Any) -> Any:
        """The answer's JSON."""
        status, answer = self.status(name, **words)
        assert status == 200, answer
        return answer

    def close(self) -> None:
        """Reads nothing more."""
        self.library.close()
