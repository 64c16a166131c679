"""What a file carries with it: the answers of the server, under the names that the pages ask for, cut to a size."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import built_profiles
from deepscope.dashboard import embedding
from deepscope.dashboard.answer import Column, Question, Table
from deepscope.dashboard.application import QUESTIONS, Application
from deepscope.dashboard.embedding import EMBEDDED, Budget, Embedded, cut_table, embedded_answers, key_of
from deepscope.dashboard.html_file import OneProfile
from deepscope.dashboard.library import Library
from deepscope.errors import OptionError

ALL = Budget(rows=10**6, nodes=10**6, text_bytes=10**9)
PROFILES = {
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


@pytest.mark.parametrize("name", PROFILES)
def test_answers_are_those_of_the_server(name: str) -> None:
    library = OneProfile(PROFILES[name])
    application = Application(library)
    found = embedded_answers(library, PROFILES[name], ALL)
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
    monkeypatch.setattr(embedding, "question_type", lambda _: Asked)
    one = Embedded(lambda *_: ({"file": name} for name in names), is_bounded=True)
    monkeypatch.setattr(embedding, "EMBEDDED", {"texts": one})
    profile = built_profiles.training()
    found = embedded_answers(OneProfile(profile), profile, Budget(rows=2, nodes=0, text_bytes=1200))
    assert list(found) == ["texts?file=a", "texts?file=bb", "texts?file=d"]
    assert sum(len(body) for body in found.values()) <= 1200
    shown = msgspec.json.decode(found["texts?file=a"])
    assert (len(shown["tables"][0]["rows"]), shown["tables"][0]["leftOut"]) == (2, 6)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_an_answer_that_is_another_ones_takes_no_more_than_that_ones_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(library: Library, question: Asked) -> Text:
        return Text(text=question.file[:1] * 1000, tables=[])

    monkeypatch.setitem(QUESTIONS, "texts", texts)
    monkeypatch.setattr(embedding, "question_type", lambda _: Asked)
    one = Embedded(lambda *_: ({"file": name} for name in ("a1", "a2", "b1")), is_bounded=True)
    monkeypatch.setattr(embedding, "EMBEDDED", {"texts": one})
    profile = built_profiles.training()
    found = embedded_answers(OneProfile(profile), profile, Budget(rows=2, nodes=0, text_bytes=2200))
    assert list(found) == ["texts?file=a1", "texts?file=a2", "texts?file=b1"]
    assert msgspec.json.decode(found["texts?file=a2"]) == "texts?file=a1"


def test_of_many_ranks_those_with_the_longest_own_time_are_in_the_file() -> None:
    ranks = []
    for number in range(6):
        one = built_profiles.training()
        one.trace.ranks = [number]
        split = next(row for row in one.overview if row.section == "step" and row.name != "communication")
        split.time_ns += 10**9 * (number == 4) + 10**6 * number
        ranks.append(one)
    library, merged = OneProfile(ranks[0], ranks), built_profiles.training()
    every = [key for key in embedded_answers(library, merged, ALL) if key.startswith("rank?")]
    assert every == [f"rank?of={number}" for number in (4, 5, 3, 2, 1, 0)]
    size = sum(len(Application(library).answer("rank", {"of": number}).body) for number in ("4", "5"))
    few = embedded_answers(library, merged, Budget(rows=100, nodes=100, text_bytes=size))
    assert {"rank?of=4", "rank?of=5"} <= set(few)
    assert {"rank?of=0", "rank?of=1"}.isdisjoint(few)
