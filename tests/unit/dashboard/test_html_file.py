"""The file: it asks nobody, is small, and nothing of a trace in it is read as markup by a browser."""

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
from deepscope.dashboard.answer import Choice
from deepscope.dashboard.html_file import LIMIT_BYTES, OneProfile, html_file
from deepscope.errors import OptionError
from deepscope.records import Finding, Profile, Remedy, SourceFile

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'`&amp;<!--"


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
    text = html_file(PROFILES[name])
    assert text.isascii()
    found = Elements(text)
    head = ["html", "head", "meta", "meta", "meta", "meta", "title", "style"]
    assert [tag for tag, _ in found.tags] == [*head, "body", "noscript", "div", "script", "script"]
    for _, attributes in found.tags:
        assert not any(key.startswith("on") or key in ("src", "href", "style") for key in attributes)


@pytest.mark.parametrize("name", PROFILES)
def test_only_the_bundled_script_and_style_may_run(name: str) -> None:
    found = Elements(html_file(PROFILES[name]))
    [policy] = [str(one["content"]) for _, one in found.tags if one.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert (rules["base-uri"], rules["form-action"]) == ("'none'", "'none'")
    assert "connect-src" not in rules
    for tag, text in (("script", found.texts["script"][1]), ("style", found.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not re.search(r"url\((?!data:)|https?://(?!www\.w3\.org/)", found.texts["style"][0])


def shown(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Elements(html_file(profile)).texts["script"][0])
    return found


@pytest.mark.parametrize("name", PROFILES)
def test_the_answers_stand_in_the_file_as_they_are(name: str) -> None:
    data = shown(PROFILES[name])
    assert data["runs?"]["runs"] == []
    assert data["header?"]["isDevice"] is (PROFILES[name].metric == "device")
    assert len(data["findings?"]["findings"]) == len(PROFILES[name].findings)


def test_hostile_names_are_text_within_the_answers() -> None:
    assert shown(hostile())["header?"]["title"] == EVIL


def test_a_large_profile_is_shown_in_part() -> None:
    profile = built_profiles.training()
    profile.files = {f"/home/f{number}.py": SourceFile(text="x = 1\n" * 20_000) for number in range(30)}
    remedy = Remedy(text="do it" * 50)
    one = Finding(
        code="DS001", title="t" * 300, severity="warning", file="a.py", line=1, message="m" * 2000, evidence={},
        saving_ns=1, remedy=remedy, doc="",
    )  # fmt: skip
    profile.findings = [one] * 300
    assert len(html_file(profile)) < LIMIT_BYTES


def test_no_other_profile_can_be_chosen() -> None:
    library = OneProfile(built_profiles.training())
    assert library.profile(Choice()) is library.profile(Choice())
    for choice in (Choice(step=1), Choice(rank=0), Choice(run="x")):
        with pytest.raises(OptionError):
            library.profile(choice)


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    return found


@pytest.mark.parametrize("name", PROFILES)
def test_a_real_browser_draws_it_and_runs_nothing_of_the_trace(name: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(html_file(PROFILES[name]), encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={tmp_path / 'user'}"]
    words += ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [chromium(), *words, "--enable-logging=stderr", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, "an error, or something that the policy forbids"
    drawn = Elements(done.stdout)
    title = drawn.texts["title"][0]
    assert title.endswith(" \u00b7 DeepScope")
    assert title.startswith(EVIL) is (name == "hostile")
    assert "img" not in drawn.texts
    assert [tag for tag, _ in drawn.tags].count("section") >= 3
    assert "progress" not in drawn.texts
    assert not any(attributes.get("role") == "alert" for _, attributes in drawn.tags)
    assert not any(key.startswith("on") for _, attributes in drawn.tags for key in attributes)
    links = {str(one["href"]) for tag, one in drawn.tags if tag == "a"}
    assert {link[0] for link in links} == {"#"}
