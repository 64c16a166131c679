"""The page: one file that asks nobody, small, and nothing of a trace in it that a browser reads as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import built_profiles
from deepscope.records import Operator, Part, Place, Profile, SourceFile
from deepscope.report.exports.html import LIMIT_BYTES, html_page
from deepscope.report.exports.html_data import Budget, page_data

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'`&amp;<!--"
LARGE = Budget(rows=10**6, nodes=10**6, source_bytes=10**9)


def hostile() -> Profile:
    profile = built_profiles.hostile()
    profile.files = {"/tmp/a.py": SourceFile(text=f"{EVIL}\n\u202e\x1b]0;x\n")}
    profile.lines[0].function = profile.lines[0].text = EVIL
    profile.lines[0].file = "/tmp/a.py"
    profile.trace.program = profile.trace.device = EVIL
    profile.trace.warnings = [EVIL, "javascript:alert(1)"]
    profile.operators[0].name = profile.kernels[0].name = profile.modules[0].path = EVIL
    profile.findings[0].message = profile.findings[0].remedy.text = EVIL
    return profile


PROFILES = {
    "training": built_profiles.training(),
    "cpu": built_profiles.cpu_only(),
    "memory": built_profiles.with_memory(),
    "hostile": hostile(),
}


class Elements(HTMLParser):
    """What a browser would make of the file."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        self.texts.setdefault(tag, []).append("")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


@pytest.mark.parametrize("name", PROFILES)
def test_the_file_has_its_own_elements_alone(name: str) -> None:
    text = html_page(PROFILES[name])
    assert text.isascii()
    found = Elements(text)
    names = [tag for tag, _ in found.tags]
    assert names == [
        "html",
        "head",
        "meta",
        "meta",
        "meta",
        "meta",
        "title",
        "style",
        "body",
        "noscript",
        "script",
        "script",
    ]
    for _, attributes in found.tags:
        assert not any(key.startswith("on") or key in ("src", "href", "style") for key in attributes)


@pytest.mark.parametrize("name", PROFILES)
def test_only_the_bundled_script_and_style_may_run(name: str) -> None:
    found = Elements(html_page(PROFILES[name]))
    [policy] = [str(one["content"]) for _, one in found.tags if one.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert (rules["base-uri"], rules["form-action"]) == ("'none'", "'none'")
    for tag, text in (("script", found.texts["script"][1]), ("style", found.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not re.search(r"https?://(?!www\.w3\.org/)", found.texts["style"][0])


def shown(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Elements(html_page(profile)).texts["script"][0])
    return found


@pytest.mark.parametrize("name", PROFILES)
def test_the_tables_and_the_flame_graph_hold_all_device_time(name: str) -> None:
    profile = PROFILES[name]
    data = shown(profile)
    lines = data["tables"][0]
    column = [one["title"] for one in lines["columns"]].index("device self" if data["isDevice"] else "operators self")
    assert sum(row[column] for row in lines["rows"]) == profile.totals.device_ns
    assert sum(node[3] for node in data["flame"]["nodes"]) == profile.totals.device_ns
    for number, node in enumerate(data["flame"]["nodes"]):
        assert -1 <= node[0] < number


def test_of_too_many_nodes_the_largest_stay_and_no_time_is_lost() -> None:
    profile = built_profiles.training()
    profile.places = [Place("operator", f"aten::op{number}") for number in range(500)]
    profile.parts = [Part(1, -1, number, number * 100, 0, 1) for number in range(500)]
    profile.parts += [Part(1, 499, number, number, 0, 1) for number in range(300)]
    full, small = (page_data(profile, Budget(1000, nodes, 0))["flame"]["nodes"] for nodes in (10**6, 100))
    assert len(full) > 700
    assert len(small) == 100
    for column in (3, 4, 5):
        assert sum(node[column] for node in small) == sum(node[column] for node in full)
    assert all(-1 <= node[0] < number for number, node in enumerate(small))


def test_source_stands_there_as_it_ran_with_what_steers_a_terminal_made_visible() -> None:
    data = shown(hostile())
    [file] = [one for one in data["files"] if one["path"] == "/tmp/a.py"]
    assert file["text"][:2] == [EVIL, "\\u202e\\x1b]0;x"]


def test_a_large_profile_is_shown_in_part_and_says_so() -> None:
    profile = built_profiles.training()
    profile.operators = [
        Operator(
            name=f"{'x' * 290}{number}", calls=1, self_device_ns=1, total_device_ns=1, self_cpu_ns=0, total_cpu_ns=0
        )
        for number in range(20_000)
    ]
    profile.files = {f"/home/f{number}.py": SourceFile(text="x = 1\n" * 20_000) for number in range(30)}
    text = html_page(profile)
    assert len(text) < LIMIT_BYTES
    operators = shown(profile)["tables"][1]
    assert len(operators["rows"]) + operators["leftOut"] == 20_000
    assert len(json.dumps(page_data(profile, LARGE))) > LIMIT_BYTES


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    return found


@pytest.mark.parametrize("name", PROFILES)
def test_a_real_browser_draws_it_and_runs_nothing_of_the_trace(name: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(html_page(PROFILES[name]), encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={tmp_path / 'user'}"]
    words += ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [chromium(), *words, "--enable-logging=stderr", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, "an error, or something that the policy forbids"
    drawn = Elements(done.stdout)
    assert (drawn.texts["title"][0] == f"DeepScope: {EVIL}") is (name == "hostile")
    assert drawn.texts["title"][0].startswith("DeepScope: ")
    assert "img" not in drawn.texts
    assert [tag for tag, _ in drawn.tags].count("section") >= 4
    assert not any(key.startswith("on") for _, attributes in drawn.tags for key in attributes)
    assert {str(one["href"])[0] for tag, one in drawn.tags if tag == "a"} == {"#"}
    cells = drawn.texts["td"] + drawn.texts["button"]
    for line in PROFILES[name].lines[:3]:
        assert any(cell.endswith(f":{line.line}") for cell in cells)
