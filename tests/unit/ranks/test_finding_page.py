"""DS032 has a page as all findings have."""

from __future__ import annotations

import re
from pathlib import Path

from deepscope.analysis.findings import RULES
from deepscope.ranks.finding import CODE, TITLE


def test_the_finding_has_a_page_and_its_row_in_the_index(repository: Path) -> None:
    assert CODE not in {rule.code for rule in RULES}
    page = (repository / "docs" / "findings" / f"{CODE}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {CODE}: {TITLE}\n")
    sections = {"## What happens", "## Evidence", "## Saving", "## Remedy", "## When it does not fire"}
    assert sections <= set(re.findall(r"^## .*", page, re.MULTILINE))
    index = (repository / "docs" / "findings" / "README.md").read_text(encoding="utf-8")
    assert f"| [{CODE}]({CODE}.md) | {TITLE} |" in index
