"""What all tests share: nothing is read from or left in the user's own folders, and none is skipped in silence."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from allowed_skips import is_allowed
from recorded_traces import NO_SHARED_TRACES, PROFILES, SHARED_TRACES

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# A shell gives its background jobs an ignored SIGINT, and they hand it on; the programs under test are to hear theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)
# How long an example takes says nothing on a busy machine.
settings.register_profile("deepscope", deadline=None)
settings.load_profile("deepscope")
# Read when a test first imports gcsfs: else it asks by gRPC what kind of bucket it is, which no emulator answers.
# Several workers of pytest share the cores, and threads of an operator that wait for each other spin: a step of 4 ms
# takes 300. It is read as torch is imported first, here and in the programs that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"


def pytest_configure(config: pytest.Config) -> None:
    if PROFILES not in os.environ:  # xdist's workers have it from the process that starts them
        folder = os.environ[PROFILES] = tempfile.mkdtemp(prefix="deepscope-profiles-")
        config.add_cleanup(lambda: os.environ.pop(PROFILES, None))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="thorough tests, too: those of the shared traces among them")


def pytest_report_header(config: pytest.Config) -> str:
    if _takes_all(config):
        return "tests: all"
    return "tests: without the thorough ones, which --all adds"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _takes_all(config):
        left_out = [item for item in items if _is_thorough(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_thorough(item)]


def _takes_all(config: pytest.Config) -> bool:
    """Whether thorough tests run: where all are asked for, or some by a marker or by their names."""
    return bool(config.option.all or config.option.markexpr or any("::" in name for name in config.args))


def _is_thorough(item: pytest.Item) -> bool:
    shared = item.get_closest_marker("shared_traces")
    return item.get_closest_marker("thorough") is not None or (shared is not None and not shared.kwargs.get("always"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if SHARED_TRACES is None and item.get_closest_marker("shared_traces"):
        pytest.skip(NO_SHARED_TRACES)


@pytest.fixture(scope="module", autouse=True)
def _what_is_there_already_is_not_looked_at() -> None:
    """What was imported, and what other files have left, is hidden from the collector as in a process of its own.

    Recordings look through all that it knows, which takes a second where all files of tests are imported.
    """
    gc.collect()
    gc.freeze()


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
