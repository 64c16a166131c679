"""Two thousand mutated traces; `scripts/fuzz` runs more, keeps what fails and replays it."""

from __future__ import annotations

import pytest

from fuzz import __main__ as program
from fuzz.cases import built_documents, make_case, recorded_documents
from fuzz.judge import judge

_BATCH = 100
_ALWAYS = 100
_BATCHES = [
    pytest.param(first, marks=[pytest.mark.thorough] if first >= _ALWAYS else []) for first in range(0, 2000, _BATCH)
]


@pytest.mark.parametrize("first", _BATCHES)
def test_a_mutated_trace_is_a_profile_that_conserves_or_an_error_of_ours(tmp_path, repository, first):
    documents = built_documents() + recorded_documents(repository / "tests" / "data" / "traces")
    for number in range(first, first + _BATCH):
        case = make_case(number, documents)
        try:
            judge(case, tmp_path, deeply=number % 4 == 0)
        except Exception as error:
            story = ", ".join(case.story)
            raise AssertionError(
                f"scripts/fuzz --first {number} --count 1 (partial: {case.partial}; {story})"
            ) from error


def test_a_case_is_the_same_each_time():
    documents = built_documents()
    assert [make_case(number, documents) for number in range(40)] == [
        make_case(number, documents) for number in range(40)
    ]


def test_a_failing_case_is_kept_and_can_be_replayed(tmp_path, monkeypatch, capsys):
    def fail(case, folder, *, deeply):
        raise ZeroDivisionError(case.name)

    monkeypatch.setattr(program, "limit_memory", lambda size_bytes: None)  # it would hold for this process ever after
    arguments = ["--first", "7", "--count", "1", "--traces", "nowhere", "--failures", str(tmp_path)]
    with monkeypatch.context() as broken:
        broken.setattr(program, "judge", fail)  # a stand-in: no case is known that fails
        assert program.main(arguments) == 1
    assert "ZeroDivisionError: case-7" in capsys.readouterr().out
    kept = tmp_path / "case-7.pt.trace.json"
    assert kept.read_bytes() == make_case(7, built_documents()).data
    assert program.main(["--replay", str(kept)]) == 0
