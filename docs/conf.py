"""Sphinx's settings for the site that `scripts/docs` builds from these pages, the README and the docstrings."""

import os
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from sphinx.ext.napoleon import Config, GoogleDocstring

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "integrations"))

import deepscope  # noqa: E402
from deepscope import Profile, RecordingOptions  # noqa: E402

Profile.__annotations__ = get_type_hints(Profile)  # without how ranks merge

project = "DeepScope"
copyright = "The DeepScope developers"  # noqa: A001 - Sphinx's name
release = version = deepscope.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["images"]
default_role = "py:obj"
smartquotes = False
toc_object_entries_show_parents = "hide"
myst_heading_anchors = 4
autodoc_mock_imports = [
    "IPython",
    "accelerate",
    "ignite",
    "lightning",
    "psutil",
    "pytorch_lightning",
    "torch",
    "transformers",
]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
add_module_names = False
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"DeepScope {release}"
html_favicon = "../vscode-extension/media/icon.png"
html_copy_source = False
html_show_sphinx = False

REPOSITORY = os.environ.get("DEEPSCOPE_REPOSITORY", "")
"""Address of the sources on the web, `https://host/owner/name`. Without it links to files outside `docs/` are words."""

_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s:#]+)(#[^()\s]*)?\)")

_ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


def with_links(text: str, page: Path) -> str:
    """Markdown of a page, or of the README as one; relative links lead to pages of the site or to the repository."""

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found[1], found[2], found[3] or ""
        target = (page.parent / path).resolve()
        if not target.exists():
            return found[0]  # Sphinx says so
        if target.is_relative_to(DOCS):
            return f"[{words}]({os.path.relpath(target, DOCS if page.parent == ROOT else page.parent)}{anchor})"
        return f"[{words}]({REPOSITORY}/blob/main/{target.relative_to(ROOT)}{anchor})" if REPOSITORY else words

    return _LINK.sub(link, text)


def read_source(_app: Any, name: str, source: list[str]) -> None:
    """The README stands before the list of pages."""
    page = DOCS / f"{name}.md"
    if page.exists():
        source[0] = with_links(_ANCHOR.sub(r"(\1)=", source[0]), page)
    if name == "findings/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\nDS*\nhot-line\n```\n"
    if name == "index":
        readme = ROOT / "README.md"
        source[0] = with_links(readme.read_text(encoding="utf-8"), readme) + "\n" + source[0]


def document(_app: Any, what: str, name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Sections of docstrings as fields; pages that they name as links; `RecordingOptions` with its options."""
    if what != "attribute":  # there "word: …" is no section
        lines[:] = GoogleDocstring(lines, Config(napoleon_use_rtype=False), what=what, name=name).lines()
    if name == "deepscope.RecordingOptions":
        lines += [f"- ``{one.name}``: {one.metadata['what']}" for one in fields(RecordingOptions)]
    for number, line in enumerate(lines):
        linked = re.sub(r"(?<![`\w/])docs/([a-z-]+)\.md", r":doc:`docs/\1.md <\1>`", line)
        linked = re.sub(r"(?<![`:])`([a-z_]+)`(?!`)", r"``\1``", linked)  # an option, not the method of its name
        lines[number] = re.sub(r"`s\b", r"`\\ s", linked)  # a plural


def setup(app: Any) -> None:
    """Connects both."""
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", document)
