"""What the whole run's time goes to, on the first page."""

from pathlib import Path
from typing import Any

from asking import Asking
from deepscope.trace.format.run_account import PartAccount, RunAccount, account_path, encoded_account
from trace_builder import TraceBuilder

MS = 1_000_000
PARTS = [
    PartAccount("steps", 200 * MS, 10),
    PartAccount("data", 40 * MS, 10),
    PartAccount("evaluation", 650 * MS, 5),
    PartAccount("recording", 300 * MS, 0),
    PartAccount("start", 60 * MS, 0),
    PartAccount("rest", 50 * MS, 0),
]


ACCOUNT = RunAccount(sum(part.time_ns for part in PARTS), PARTS, 20 * MS, [])


def trace_in(folder: Path) -> Path:
    trace = TraceBuilder().step(1, 0, 20 * MS).line("/w/train.py", 3, "main", 0, 20 * MS)
    trace.op("aten::mm", 1 * MS, 2 * MS).kernel("gemm", 2 * MS, 4 * MS, 10 * MS)
    return trace.write(folder / "a.pt.trace.json")


def splits(ask: Asking) -> dict[str, Any]:
    return {split["section"]: split for split in ask("overview")["splits"]}


def test_the_parts_of_the_run_without_the_recorders_own_are_the_first_bar(tmp_path: Path) -> None:
    path = trace_in(tmp_path)
    account_path(path).write_bytes(encoded_account(ACCOUNT))
    ask = Asking(path)
    found, sentence = splits(ask), ask("overview")["sentence"]
    ask.close()
    assert next(iter(found)) == "run"
    parts = {part["name"]: part["timeNs"] for part in found["run"]["parts"]}
    assert parts == {
        "training steps": 200 * MS,
        "waiting for data": 40 * MS,
        "validation": 650 * MS,
        "before the first step": 60 * MS,
        "everything else": 50 * MS,
    }
    assert found["run"]["wholeNs"] == sum(parts.values())
    assert sentence.startswith(
        "Validation takes 65.0 % of the run: 5 times, 130 ms each; validate less often, or on fewer batches."
    )


def test_the_bar_is_there_once_the_run_has_ended(tmp_path: Path) -> None:
    path = trace_in(tmp_path)
    ask = Asking(path)
    before = splits(ask)
    account_path(path).write_bytes(encoded_account(ACCOUNT))
    after = splits(ask)
    ask.close()
    assert "run" not in before
    assert list(after) == ["run", *before]
