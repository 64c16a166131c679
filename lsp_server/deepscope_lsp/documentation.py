"""Where the page that explains a diagnostic is."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

__all__ = ["page_uri"]


@lru_cache(maxsize=256)
def page_uri(code: str, doc: str) -> str | None:
    """The page of a code: the finding's own address, else below the project's documentation, else in this checkout.

    None where there is no such page; nothing is made up.
    """
    if doc.startswith("https://"):
        return doc
    name = doc or f"docs/findings/{code}.md"
    page = Path(__file__).resolve().parents[2] / name
    if ".." not in Path(name).parts and page.is_file():
        return page.as_uri()
    base = _documentation()
    return f"{base.rstrip('/')}/{name.removeprefix('docs/').removesuffix('.md')}" if base else None


@lru_cache(maxsize=1)
def _documentation() -> str:
    try:
        urls = metadata("deepscope").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    pairs = (url.split(",", 1) for url in urls if "," in url)
    return next((url.strip() for name, url in pairs if name.strip().casefold() == "documentation"), "")
