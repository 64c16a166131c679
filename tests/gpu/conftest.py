"""GPU checks skip where there is no CUDA device; `scripts/gpu-check` asks for one line of text each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

_LINES = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--line-each", action="store_true", help="print PASS, FAIL or SKIP and the claim for each check")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--line-each", default=False):
        config.pluginmanager.register(LineEach(config))


def why_no_device() -> str | None:
    """The reason why nothing can be checked here; None where a CUDA device answers."""
    try:
        import torch
    except ModuleNotFoundError:
        return "torch is not installed"
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return "no CUDA device"
    return None


@pytest.fixture(autouse=True)
def _needs_device() -> None:
    if reason := why_no_device():
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def _clean_device(_needs_device: None) -> Iterator[None]:
    """Each check begins and ends with an idle device and the same random numbers."""
    import torch

    torch.manual_seed(0)
    yield
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


class LineEach:
    """Prints one line a check, in place of pytest's dots."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        if report.when == "call" or report.outcome != "passed":
            return report.outcome, "", ""
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        words = {"passed": "PASS", "failed": "FAIL", "skipped": "SKIP"}
        reporter.ensure_newline()
        reporter.write_line(f"{words[report.outcome]}  {_claim(report.nodeid)}{_reason(report)}")


def _claim(nodeid: str) -> str:
    """`tests/gpu/test_lines.py::test_forward_work_stands_at_its_line` → `forward work stands at its line`."""
    return nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")


def _reason(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return f": {report.longrepr[2].removeprefix('Skipped: ')}"
    if report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message if crash is not None else str(report.longrepr)
        return f" ({report.when}): {message.splitlines()[0] if message else ''}"
    return ""
