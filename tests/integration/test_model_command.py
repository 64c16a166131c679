"""`deepscope model`, and benchmarks of real functions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

import deepscope
from deepscope.cli import main
from deepscope.errors import FactoryError, OptionError
from deepscope.measure.model import load_factory, made_by

SOURCE = """
import torch
from torch import nn
from neighbour import WIDTH

print("printed while it is imported")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x, scale=1.0):
        print("printed by the model")
        for layer in self.layers:
            x = layer(x) * scale
        return x


class Batches(nn.Module):
    def forward(self, batch):
        return batch["x"] @ batch["y"]


def one(): return Net(), torch.randn(4, WIDTH)
def several(): return Net(), torch.randn(4, WIDTH), 2.0
def listed(): return [Net(), [torch.randn(4, WIDTH)]]
def keywords(): return Net(), {"x": torch.randn(4, WIDTH), "scale": 2}
def both(): return Net(), (torch.randn(4, WIDTH),), {"scale": 2}
def dict_input(): return Batches(), {"x": torch.randn(4, 8), "y": torch.randn(8, 2)}
def alone(): return Net()
def number(): return 3
def fails(): raise ValueError("no weights here\\nat all")
def wrong_shape(): return Net(), torch.randn(4, 63)
value = 3
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("WIDTH = 64\n")
    file = tmp_path / "net_for_model.py"
    file.write_text(SOURCE)
    return file


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, net: Path) -> Iterator[Callable[..., Done]]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(net.parent)
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(["model", *arguments])
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, *capfd.readouterr())

    yield command
    for name in ("neighbour", "net_for_model"):
        sys.modules.pop(name, None)


def test_the_command_prints_a_table_of_modules(run: Callable[..., Done], net: Path):
    done = run(f"{net}:one")
    assert done.returncode == 0, done.stderr
    assert "printed" not in done.stdout
    assert "printed by the model" in done.stderr
    assert done.stdout.splitlines()[2].split() == ["FLOPs", "98,304"]
    assert "layers.2" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_command_takes_a_module_and_writes_json(run: Callable[..., Done], net: Path):
    done = run("net_for_model:keywords", "--format", "json", "--backward", "--meta")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["total"]["flops"] == 262_144
    assert sum(row["flops"] for row in told["by_both"]) == 262_144
    assert told["by_module"][0]["class_name"] == "Net"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("{net}:alone", "net_for_model.py:alone: returned Net alone; it must return a model and its inputs"),
        ("{net}:number", "returned int; it must return a model and its inputs"),
        ("{net}:fails", "failed: ValueError: no weights here (net_for_model.py:"),
        ("{net}:wrong_shape", "cannot be called: RuntimeError: mat1 and mat2"),
        ("{net}:value", "is no function"),
        ("{net}:missing", "has no missing; there are: one, several"),
        ("{net}", "must be FILE:FACTORY"),
        ("absent.py:one", "absent.py: no such file"),
        ("no.such.package:one", "no.such.package: there is no file and no module of this name"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run: Callable[..., Done], net: Path, target: str, words: str):
    done = run(target.format(net=net))
    assert done.returncode == (2 if target == "{net}" else 1)  # no FILE:FACTORY is wrong usage
    assert done.stdout == ""
    told = [line for line in done.stderr.splitlines() if not line.startswith("printed")]
    assert len(told) == 1, done.stderr
    assert words in told[0]


@pytest.mark.parametrize(
    ("name", "inputs", "keywords"),
    [
        ("one", 1, 0),
        ("several", 2, 0),
        ("listed", 1, 0),
        ("keywords", 0, 2),
        ("both", 1, 1),
        ("dict_input", 1, 0),
    ],
)
def test_a_factory_may_say_its_inputs_in_several_ways(
    run: Callable[..., Done], net: Path, name: str, inputs: int, keywords: int
):
    call = made_by(load_factory(f"{net}:{name}"), name)
    assert (len(call.inputs), len(call.keywords)) == (inputs, keywords)
    assert deepscope.count_model(call.model, *call.inputs, **call.keywords).total.flops > 0


def test_a_file_that_is_no_python_is_told(tmp_path: Path):
    (tmp_path / "broken.py").write_text("def (:\n")
    with pytest.raises(FactoryError, match=r"broken.py: cannot be imported: SyntaxError"):
        load_factory(f"{tmp_path / 'broken.py'}:f")


def test_a_benchmark_of_a_module_has_all_figures():
    timing = deepscope.benchmark(nn.Linear(64, 64), torch.randn(8, 64), batch_size=8, seconds=0.01, device="cpu")
    assert (timing.name, timing.device, timing.batch_size) == ("Linear", "cpu", 8)
    assert 0 < timing.min_ns <= timing.p10_ns <= timing.median_ns <= timing.p90_ns <= timing.p99_ns <= timing.max_ns
    assert timing.items_per_second == pytest.approx(8 * timing.calls_per_second)
    assert timing.calls_per_second * timing.mean_ns == pytest.approx(1e9, rel=1e-6)
    assert timing.peak_bytes == 8 * 64 * 4
    assert json.loads(timing.to_json())["calls"] == timing.calls


def test_the_peak_of_memory_is_what_is_live_at_once():
    def function() -> torch.Tensor:
        first = torch.empty(100_000)
        second = first.clone()
        del first
        return second.clone()

    assert deepscope.benchmark(function, seconds=0.001, device="cpu").peak_bytes == 2 * 400_000


def test_a_failing_function_raises_what_it_raises():
    with pytest.raises(ZeroDivisionError):
        deepscope.benchmark(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("option", "value"), [("batch_size", 0), ("batch_size", True), ("seconds", 0), ("device", "nonsense")]
)
def test_a_wrong_option_is_named(option: str, value: object):
    with pytest.raises(OptionError, match=f"^{option}="):
        deepscope.benchmark(lambda: None, **{option: value})
