"""JSON texts of a trace's arguments in one spelling, whatever blanks and lines their recorder wrote."""

from __future__ import annotations

import json


def one_spelling(text: str) -> str:
    """`[64, 1, 1]` for whatever says the same; a text that is no JSON as it is."""
    try:
        return json.dumps(json.loads(text)) if text else ""
    except (ValueError, RecursionError):
        return text
