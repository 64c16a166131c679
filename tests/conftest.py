"""What all tests share: nothing is read from or left in the user's own folders, and none is skipped in silence."""

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from allowed_skips import is_allowed

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# A shell gives its background jobs an ignored SIGINT, and they hand it on; the programs under test are to hear theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Read when a test first imports gcsfs: else it asks by gRPC what kind of bucket it is, which no emulator answers.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _nothing_goes_wrong_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A warning of the recorder that no test expects: where warnings are errors, as here, it goes to the log."""
    yield
    assert [record.message for record in caplog.get_records("call") if record.name == "deepscope"] == []


@pytest.fixture
def repository() -> Path:
    """The root of the project."""
    return Path(__file__).resolve().parents[1]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judged((yield))


def _judged(report: Report) -> Report:
    """The report; of a test that was skipped for a reason that is not on the list, one of a failure."""
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        path, line, said = report.longrepr
        reason = said.removeprefix("Skipped: ")
        if not is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: skipped for a reason that tests/allowed_skips.py does not have: {reason}"
    return report
