"""Logs of libraries go to a file where a command reads remote stores, and nowhere else."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepscope.cli import entry
from deepscope.cli.entry import keep_apart


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*entry._STORES, *entry._CLUSTER):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    yield
    for handler in logging.getLogger("gcsfs").handlers:
        handler.close()


def fail() -> None:
    try:
        raise ConnectionError("no such bucket")
    except ConnectionError:
        logging.getLogger("gcsfs").exception("out of retries")


def test_a_traceback_stays_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(tmp_path))
    keep_apart(["report", "gs://bucket/run"])
    fail()
    assert capfd.readouterr() == ("", "")
    assert "ConnectionError: no such bucket" in (tmp_path / "libraries.log").read_text()


@pytest.mark.parametrize("arguments", [["report", "runs/exp1"], ["run", "train.py", "s3://data"], []])
def test_logs_of_a_users_program_and_of_local_runs_are_left_alone(arguments: list[str]) -> None:
    keep_apart(arguments)
    assert logging.getLogger("gcsfs").propagate
