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

import msgspec
import pytest

import built_profiles
from deepscope.dashboard import html_file as html_file_module
from deepscope.dashboard.application import QUESTIONS, Application
from deepscope.dashboard.html_file import (
    EMBEDDED,
    LIMIT_BYTES,
    Budget,
    Embedded,
    OneProfile,
    cut_table,
    embedded_answers,
    html_file,
    key_of,
    make_answers,
)
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, Column, Question, Table
from deepscope.errors import OptionError
from deepscope.records import Finding, Profile, Remedy, SourceFile
from deepscope.records.ranks import merge_profiles

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
def test_no_page_of_the_file_lacks_its_answer(name: str) -> None:
    profile = PROFILES[name]
    library = OneProfile(profile)
    asked = {key_of(question, words) for question, one in EMBEDDED.items() for words in one.queries(profile, library)}
    assert asked == set(shown(profile))


def test_the_file_of_a_finding_is_there_though_no_line_of_it_was_measured() -> None:
    profile = built_profiles.training()
    profile.files["/home/ada/losses.py"] = SourceFile(text="import torch\n")
    profile.findings[0] = msgspec.structs.replace(profile.findings[0], file="/home/ada/losses.py", line=1)
    made = make_answers(OneProfile(profile), profile)
    assert made[key_of("file", {"file": "/home/ada/losses.py"})].text[0] == "import torch"


def test_each_function_that_a_line_is_shown_to_run_in_can_be_chosen() -> None:
    profile = built_profiles.training()
    first = profile.lines[0]
    profile.lines[0] = msgspec.structs.replace(first, function="<lambda>\x1b[31m")
    profile.lines[1] = msgspec.structs.replace(first, function="f" * 1000)
    made = make_answers(OneProfile(profile), profile)
    functions = made[key_of("line", {"file": first.file, "line": first.line})].functions
    keys = [key_of("line", {"file": first.file, "line": first.line, "function": one}) for one in functions]
    assert len(keys) == 2
    assert [made[key].function for key in keys] == functions


def test_no_page_of_several_ranks_lacks_its_answer() -> None:
    ranks = [built_profiles.with_memory() for _ in range(2)]
    for number, one in enumerate(ranks):
        one.trace.ranks, one.trace.world_size = [number], 2
    merged = merge_profiles(ranks)
    made = make_answers(OneProfile(merged, ranks), merged)
    assert {"memory?", "distributed?", "rank?of=0", "rank?of=1"} <= set(made)
    assert made["memory?"].devices[0].rank == 0


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


ALL = Budget(rows=10**6, nodes=10**6, text_bytes=10**9)
SERVED = {
    "training": built_profiles.training(),
    "cpu": built_profiles.cpu_only(),
    "memory": built_profiles.with_memory(),
    "hostile": built_profiles.hostile(),
}


def test_keys_are_those_of_the_pages(repository: Path) -> None:
    cases = json.loads((repository / "vscode-extension" / "test" / "answerKeys.json").read_text(encoding="utf-8"))
    assert len(cases) >= 5
    for case in cases:
        assert key_of(case["name"], case["words"]) == case["key"]
    assert key_of("line", {"file": "a\ud800b"}) == "line?file=a%EF%BF%BDb"


def test_only_questions_that_there_are_stand_in_the_list() -> None:
    assert set(EMBEDDED) <= set(QUESTIONS)
    assert list(EMBEDDED)[:3] == ["runs", "header", "overview"]


@pytest.mark.parametrize("name", SERVED)
def test_answers_are_those_of_the_server(name: str) -> None:
    library = OneProfile(SERVED[name])
    application = Application(library)
    found = embedded_answers(make_answers(library, SERVED[name]), ALL)
    assert {"runs?", "header?", "overview?", "findings?"} <= set(found)
    for key in ("header?", "overview?", "findings?"):
        reply = application.answer(key[:-1], {})
        assert reply.status == 200
        assert json.loads(bytes(found[key])) == json.loads(reply.body)


def table(rows: int, parents: list[int]) -> Table:
    return Table(
        id="t",
        title="T",
        columns=[Column(key="name", title="name", kind="text")],
        rows=[[f"row {number}"] for number in range(rows)],
        files=["a.py", "b.py", "c.py"],
        places=[[2 - number % 3, number] if number else [-1, 0] for number in range(rows)],
        parents=parents,
        left_out=5,
    )


def test_a_cut_table_is_a_whole_one_with_fewer_rows() -> None:
    before, after = table(9, [-1, 0, 1, 0, -1, 4, 4, 6, 6]), table(9, [-1, 0, 1, 0, -1, 4, 4, 6, 6])
    cut_table(after, 2)
    assert after.rows == before.rows[:2]
    assert after.parents == [-1, 0]
    assert after.left_out == 5 + 7
    assert after.files == ["b.py"]
    assert after.places == [[-1, 0], [0, 1]]
    cut_table(before, 9)
    assert before == table(9, [-1, 0, 1, 0, -1, 4, 4, 6, 6])


class Asked(Question, frozen=True):
    file: str = ""


class Text(msgspec.Struct):
    text: str
    tables: list[Table]


def test_one_faulty_answer_is_left_out_and_texts_share_a_budget(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def texts(library: Library, question: Asked) -> Text:
        if question.file == "broken":
            raise ValueError("no")
        if question.file == "other":
            raise OptionError("file", "other", "not here")
        return Text(text=question.file * 100, tables=[table(3, [])])

    names = ["broken", "other", "a", "bb", "cccccc", "d"]
    monkeypatch.setitem(QUESTIONS, "texts", texts)
    monkeypatch.setattr(html_file_module, "question_type", lambda _: Asked)
    one = Embedded(lambda *_: ({"file": name} for name in names), is_bounded=True)
    monkeypatch.setattr(html_file_module, "EMBEDDED", {"texts": one})
    profile = built_profiles.training()
    found = embedded_answers(make_answers(OneProfile(profile), profile), Budget(rows=2, nodes=0, text_bytes=1200))
    assert list(found) == ["texts?file=a", "texts?file=bb", "texts?file=d"]
    assert sum(len(body) for body in found.values()) <= 1200
    shown = msgspec.json.decode(found["texts?file=a"])
    assert (len(shown["tables"][0]["rows"]), shown["tables"][0]["leftOut"]) == (2, 6)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_an_answer_that_is_another_ones_takes_no_more_than_that_ones_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(library: Library, question: Asked) -> Text:
        return Text(text=question.file[:1] * 1000, tables=[])

    monkeypatch.setitem(QUESTIONS, "texts", texts)
    monkeypatch.setattr(html_file_module, "question_type", lambda _: Asked)
    one = Embedded(lambda *_: ({"file": name} for name in ("a1", "a2", "b1")), is_bounded=True)
    monkeypatch.setattr(html_file_module, "EMBEDDED", {"texts": one})
    profile = built_profiles.training()
    found = embedded_answers(make_answers(OneProfile(profile), profile), Budget(rows=2, nodes=0, text_bytes=2200))
    assert list(found) == ["texts?file=a1", "texts?file=a2", "texts?file=b1"]
    assert msgspec.json.decode(found["texts?file=a2"]) == "texts?file=a1"


def test_answers_are_made_once_and_cut_for_each_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = built_profiles.training()
    asked: list[Choice] = []

    def overview(library: Library, question: Choice) -> Any:
        asked.append(question)
        return page(library, question)

    page = QUESTIONS["overview"]
    monkeypatch.setitem(QUESTIONS, "overview", overview)
    monkeypatch.setattr(html_file_module, "LIMIT_BYTES", 0)
    html_file(profile)
    assert len(asked) == 1

    budgets = [ALL, Budget(rows=2, nodes=80, text_bytes=20_000), Budget(rows=1, nodes=3, text_bytes=9_000)]
    made = make_answers(OneProfile(profile), profile)
    cut = [embedded_answers(made, budget) for budget in budgets]
    at_once = [embedded_answers(make_answers(OneProfile(profile), profile), budget) for budget in budgets]
    assert [{key: bytes(body) for key, body in one.items()} for one in cut] == [
        {key: bytes(body) for key, body in one.items()} for one in at_once
    ]
    assert len(cut[0]) > len(cut[2])


def test_of_many_ranks_those_with_the_longest_own_time_are_in_the_file() -> None:
    ranks = []
    for number in range(6):
        one = built_profiles.training()
        one.trace.ranks = [number]
        split = next(row for row in one.overview if row.section == "step" and row.name != "communication")
        split.time_ns += 10**9 * (number == 4) + 10**6 * number
        ranks.append(one)
    library, merged = OneProfile(ranks[0], ranks), built_profiles.training()
    made = make_answers(library, merged)
    every = [key for key in embedded_answers(made, ALL) if key.startswith("rank?")]
    assert every == [f"rank?of={number}" for number in (4, 5, 3, 2, 1, 0)]
    size = sum(len(Application(library).answer("rank", {"of": number}).body) for number in ("4", "5"))
    few = embedded_answers(made, Budget(rows=100, nodes=100, text_bytes=size))
    assert {"rank?of=4", "rank?of=5"} <= set(few)
    assert {"rank?of=0", "rank?of=1"}.isdisjoint(few)
