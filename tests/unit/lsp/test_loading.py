"""Profiles loaded in a process of their own."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from deepscope.errors import NotATraceError, NoTraceError, OptionError, TraceError
from deepscope.records import View
from deepscope.store.load import LoadRequest, cached_profile
from deepscope.store.selection import select
from deepscope.store.worker_process import CancelledLoadError, Loader
from deepscope_lsp.features.loading import _Progress
from lsp_profiles import record


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path / "cache"))


def test_a_trace_is_read_once(tmp_path: Path) -> None:
    request = LoadRequest(path=str(record(tmp_path)))
    assert cached_profile(request) is None
    reports: list[tuple[int, int]] = []
    profile = Loader(request).load(lambda done, total: reports.append((done, total)))
    assert profile.totals.device_ns == 40_000
    assert reports
    assert reports[-1][0] == reports[-1][1]
    kept = cached_profile(request)
    assert kept is not None
    assert kept.lines == profile.lines


@pytest.mark.parametrize(
    ("content", "error"), [("", NotATraceError), ("{}", NotATraceError), ('{"traceEvents": [{"ph": "X"', TraceError)]
)
def test_the_error_is_that_of_the_reader(tmp_path: Path, content: str, error: type[TraceError]) -> None:
    path = tmp_path / "bad.pt.trace.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(error, match=r"bad\.pt\.trace\.json"):
        Loader(LoadRequest(path=str(path))).load()


def test_an_empty_file_is_told_without_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rank0.pt.trace.json"
    path.touch()
    monkeypatch.setattr("deepscope.store.worker_process.worker", lambda: pytest.fail("a process was asked"))
    with pytest.raises(NotATraceError, match=r"rank0\.pt\.trace\.json: is empty; was the run ended"):
        Loader(LoadRequest(path=str(path), selection=select(str(path)))).load()


def test_what_is_not_there_or_not_in_it(tmp_path: Path) -> None:
    with pytest.raises(NoTraceError):
        Loader(LoadRequest(path=str(tmp_path / "missing"))).load()
    with pytest.raises(OptionError, match="step=77"):
        Loader(LoadRequest(path=str(record(tmp_path)), view=View(step=77))).load()


def test_a_cancelled_load_starts_nothing(tmp_path: Path) -> None:
    loader = Loader(LoadRequest(path=str(record(tmp_path))))
    loader.cancel()
    with pytest.raises(CancelledLoadError):
        loader.load()


def test_a_load_is_cancelled_while_it_runs(tmp_path: Path) -> None:
    loader = Loader(LoadRequest(path=str(record(tmp_path))))
    with pytest.raises(CancelledLoadError):
        loader.load(lambda _done, _total: loader.cancel())


@pytest.mark.skipif(sys.platform == "win32", reason="no signals end a process on Windows")
def test_a_process_that_is_killed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    killed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killed))
    with pytest.raises(TraceError, match=r"pt\.trace\.json: reading it ended with signal 9 \(not enough memory\?\)"):
        Loader(LoadRequest(path=str(record(tmp_path)))).load()


def test_progress_at_its_end_says_what_is_still_done() -> None:
    messages: list[str] = []
    server = SimpleNamespace(
        work_done_progress=SimpleNamespace(report=lambda _token, report: messages.append(report.message))
    )
    progress = _Progress(server, "token")  # type: ignore[arg-type]
    for done in (1 << 20, 2 << 20, 2 << 20):
        progress.report(done, 2 << 20)
    assert messages == ["1 MiB of 2 MiB", "2 MiB are read; working out what to show"]
