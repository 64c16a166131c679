"""Each diagnostic's code leads to a page that is there."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from deepscope.analysis.findings import RULES
from deepscope_lsp.engine.wording.findings import page_uri
from deepscope_lsp.server import HOT_LINE

CODES = [HOT_LINE, *(rule.code for rule in RULES)]


def test_every_code_has_a_page_of_its_name() -> None:
    for code in CODES:
        for doc in ("", f"docs/findings/{code}.md"):
            address = page_uri(code, doc)
            assert address is not None, code
            assert Path(unquote(urlsplit(address).path)).read_text(encoding="utf-8").startswith(f"# {code}: ")


@pytest.mark.parametrize("doc", ["/etc/passwd", "../../etc/passwd", "docs/../../secret.md", "docs/findings/none.md"])
def test_no_address_is_made_up_or_leads_elsewhere(doc: str) -> None:
    assert page_uri("x", doc) is None
    assert page_uri("../../../etc/passwd") is None


def test_the_pages_link_only_to_pages_that_the_wheel_holds(repository: Path) -> None:
    held = re.findall(
        r'^"(docs/.+?)" = "deepscope/docs/', (repository / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert "docs/findings" in held
    kept = {
        page for name in held for page in ((repository / name).iterdir() if ".md" not in name else [repository / name])
    }
    for page in kept:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).resolve() in kept, f"{page.name}: {target}"
