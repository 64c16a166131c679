"""The site that `scripts/docs` builds: every page, every public name, and no link that leads nowhere."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import deepscope

pytestmark = pytest.mark.thorough


@dataclass
class Page(HTMLParser):
    """What a page names and refers to."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loaded += [given[name] for name in ("src", "href") if name in given and tag in ("script", "link", "img")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    root = Path(__file__).resolve().parents[2]
    folder = tmp_path_factory.mktemp("site").resolve()
    built = subprocess.run(["bash", "scripts/docs", folder], cwd=root, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    pages = {}
    for path in folder.rglob("*.html"):
        pages[path] = Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    return pages


def test_each_page_of_the_docs_is_there(site: dict[Path, Page], repository: Path) -> None:
    index = next(path for path in site if path.name == "index.html")
    for source in (repository / "docs").rglob("*.md"):
        assert (index.parent / source.relative_to(repository / "docs")).with_suffix(".html") in site


def test_each_public_name_is_there(site: dict[Path, Page]) -> None:
    [page] = [page for path, page in site.items() if path.name == "api.html"]
    assert {f"deepscope.{name}" for name in deepscope.__all__ if name != "__version__"} <= page.ids
    assert {"module-deepscope.notebook", "deepscope.trainers.ignite.attach"} <= page.ids


def test_no_link_leads_nowhere(site: dict[Path, Page]) -> None:
    broken = []
    for path, page in site.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            anchor = unquote(address.fragment)
            if not target.exists() or (anchor and anchor not in site[target].ids):
                broken.append(f"{path.name}: {link}")
    assert broken == []
    assert sum(len(page.links) for page in site.values()) > 1_000


def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Page]) -> None:
    for path, page in site.items():
        for address in page.loaded:
            assert not urlsplit(address).scheme, (path.name, address)
            assert (path.parent / unquote(urlsplit(address).path)).exists(), (path.name, address)
