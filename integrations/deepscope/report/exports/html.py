"""One HTML file that shows a profile: scripts, styles and data within, and nothing from a network.

The page's code is TypeScript (`vscode-extension/src/webviews/report/`), bundled into `page/` by `report.mjs`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files

from deepscope.records import Profile
from deepscope.report.exports.html_data import Budget, page_data

__all__ = ["LIMIT_BYTES", "html_page"]

LIMIT_BYTES = 2_000_000
_BUDGETS = (
    Budget(rows=1000, nodes=8000, source_bytes=600_000),
    Budget(rows=300, nodes=3000, source_bytes=300_000),
    Budget(rows=100, nodes=1000, source_bytes=100_000),
    Budget(rows=30, nodes=300, source_bytes=0),
)
"""The first with which the page is small enough is taken; the last is always."""


def html_page(profile: Profile, limit_bytes: int = LIMIT_BYTES) -> str:
    """The page, in ASCII."""
    for budget in _BUDGETS:
        page = _page(page_data(profile, budget))
        if len(page) <= limit_bytes:
            break
    return page


def _page(data: dict[str, object]) -> str:
    script, style = _asset("report.js"), _asset("report.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = escape(str(data["title"])).encode("ascii", "xmlcharrefreplace").decode()
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<noscript>This page draws itself with a script of its own; allow it to run.</noscript>\n"
        f'<script type="application/json" id="profile">{_embedded(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    """A file of the bundle; nothing in it may end the element that it is put into."""
    text = (files("deepscope.report.exports") / "page" / name).read_text(encoding="utf-8").strip()
    return text.replace("</script", "<\\/script").replace("</style", "<\\/style")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: dict[str, object]) -> str:
    """JSON without a letter that HTML reads: in it, `<` stands in strings alone."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
