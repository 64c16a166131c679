"""Where the page that explains a diagnostic is."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from deepscope import errors


@lru_cache(maxsize=256)
def page_uri(code: str, doc: str = "") -> str | None:
    """The page of a code: in the installed package, else in this checkout; None where there is none.

    Args:
        code: of the diagnostic.
        doc: the page's place below the project's root, where the finding names it.
    """
    name = doc or f"docs/findings/{code}.md"
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    package = Path(errors.__file__).resolve().parent
    pages = (home / name for home in (package, package.parent.parent))
    return next((page.as_uri() for page in pages if page.is_file()), None)
