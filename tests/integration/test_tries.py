"""`deepscope try` and `deepscope verify`: what is said of small programs on the CPU. Nothing here asserts a time."""

import json
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from deepscope.cli.entry import deepscope as cli
from deepscope.records.findings import LOSSES, VERDICTS
from deepscope.trials import session as sessions
from deepscope.trials.judgement import FLOAT32_ROUNDING, compared_losses, step_ns
from deepscope.trials.messages import Answer
from deepscope.trials.remedies import REMEDIES
from deepscope.trials.runs import Command, ProgramRuns, RunFailedError
from warm_python import run_command

WARMUP, STEPS = 2, 3

DATA = """
class Pictures(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        ITEM
        return torch.full((3, 8, 8), index / 24) + noise, index % 2
"""

PROGRAM = f"""
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset
{DATA}
def main():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(Pictures(), batch_size=4, shuffle=True)
    for epoch in range(2):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=False)
            BACKWARD
            optimizer.step()
    END

if __name__ == "__main__":
    main()
"""


def write(folder: Path, *, item: str = "noise = 0", backward: str = "loss.backward()", end: str = "pass", **texts: str):
    text = PROGRAM.replace("ITEM", item).replace("BACKWARD", backward).replace("END", end)
    for old, new in texts.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "train.py"
    path.write_text(text)
    return path


def run_in(folder: Path, *names: str, rounding: float = 0.0, words: tuple[str, ...] = ("train.py",), **settings):
    """One run of the program in a folder, with remedies."""
    runs = ProgramRuns(Command.parsed(words, working=folder), time.monotonic() + 240)
    try:
        changes = [REMEDIES[name].change(dict(settings)) for name in names]
        return runs.run(warmup=WARMUP, steps=STEPS, changes=changes, rounding=rounding)
    finally:
        runs.close()
        assert not runs.folder.exists()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Answer]:
    return partial(run_in, tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """A run of the program as it stands above."""
    folder = tmp_path_factory.mktemp("plain")
    write(folder, end="raise SystemExit('not reached')")
    return run_in(folder)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """The same with one rounding added to it."""
    folder = tmp_path_factory.mktemp("noisy")
    write(folder)
    return run_in(folder, rounding=FLOAT32_ROUNDING)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command in the folder, with one round of runs for each remedy: its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "MOST_ROUNDS", 1)

    def one(*words: str) -> tuple[int, str]:
        options = ["--steps", "3", "--budget", "20m", "--yes", "--format", "json"]
        place = words.index("--")
        code = cli.main([*words[:place], *options, *words[place:]], standalone_mode=False)
        return code or 0, capsys.readouterr().out

    return one


def test_a_run_ends_behind_its_last_timed_step_and_tells_what_it_saw(plain):
    found = plain
    assert (found.error, found.steps, len(found.losses)) == ("", WARMUP + STEPS, WARMUP + STEPS)
    assert step_ns(found, WARMUP) > 0
    facts = found.facts
    assert [(one.dataset, one.workers, one.iterators) for one in facts.loaders] == [("Pictures", 0, 1)]
    assert [(one.kind, one.fused, one.takes_fused) for one in facts.optimizers] == [("AdamW", False, True)]
    assert [(one.kind, one.has_convolutions, one.is_channels_last) for one in facts.modules] == [
        ("Sequential", True, False)
    ]
    assert (facts.zeroes_in_place, facts.is_guarded, facts.has_anomaly_detection) == (True, True, False)


def test_what_changes_no_number_leaves_losses_identical(tmp_path, run, plain):
    write(tmp_path)
    found = run("loader-workers", "zero-grad-to-none", num_workers=1)
    assert found.applied == ["loader-workers", "zero-grad-to-none"]
    assert compared_losses(plain, found, draws_otherwise=True).losses == "identical"
    assert found.samples[0][: len(plain.samples[0])] == plain.samples[0]


def test_another_order_of_sums_is_rounding(tmp_path, run, plain, noisy):
    write(tmp_path)
    assert noisy.losses != plain.losses
    found = run("fused-optimizer", "channels-last")
    assert found.applied == ["fused-optimizer", "channels-last"]
    assert compared_losses(plain, found, noisy=noisy).losses in {"identical", "within rounding"}


def test_a_learning_rate_that_is_a_hundredth_larger_is_different(tmp_path, run, plain, noisy):
    write(tmp_path, **{"lr=1e-2": "lr=1.01e-2"})
    assert compared_losses(plain, run(), noisy=noisy).losses == "different"


@pytest.mark.thorough
def test_a_compiled_module_has_the_same_losses_but_for_rounding(tmp_path, run, plain, noisy):
    write(tmp_path)
    found = run("compile")
    assert found.applied == ["compile"]
    assert compared_losses(plain, found, noisy=noisy, draws_otherwise=True).losses in {"identical", "within rounding"}


@pytest.mark.thorough
def test_lower_precision_is_never_identical_and_is_compared_by_its_own_rounding(tmp_path, run, plain):
    write(tmp_path)
    rounding = REMEDIES["autocast"].rounding
    found = run("autocast", device="cpu")
    assert found.losses != plain.losses
    assert compared_losses(plain, found, noisy=run(rounding=rounding), rounding=rounding).losses == "within rounding"


@pytest.mark.thorough
def test_a_dataset_that_draws_random_numbers_has_others_in_workers(tmp_path, run):
    write(tmp_path, item="noise = torch.randn(()) / 10")
    plain = run()
    found = compared_losses(plain, run("loader-workers", num_workers=1), draws_otherwise=True)
    assert found.losses == "other random numbers"


def test_losses_are_unscaled(tmp_path, run, plain):
    scaler = "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0); scaler.scale(loss).backward()"
    write(tmp_path, backward=scaler)
    assert run().losses[0] == plain.losses[0]


def test_anomaly_detection_and_deterministic_mode_stay_off_though_the_program_asks_for_them(tmp_path, run):
    within = "with torch.autograd.detect_anomaly(): loss.backward()"
    write(tmp_path, backward=within, **{"def main():": "def main():\n    torch.use_deterministic_algorithms(True)"})
    found = run("anomaly-off", "deterministic-off").facts
    assert (found.has_anomaly_detection, found.is_deterministic) == (False, False)


@pytest.mark.thorough
def test_threads_are_those_of_the_remedy_though_the_program_sets_others(tmp_path, run):
    write(tmp_path, **{"def main():": "def main():\n    torch.set_num_threads(2)"})
    assert run("one-thread", threads=1).facts.threads == 1


@pytest.mark.thorough
def test_a_loader_gets_what_the_remedy_sets_and_keeps_what_the_program_set(tmp_path, run):
    write(tmp_path, **{"shuffle=True": "shuffle=True, num_workers=1"})
    (facts,) = run("prefetch", "persistent-workers", prefetch_factor=4).facts.loaders
    assert (facts.workers, facts.prefetch_factor, facts.persistent_workers) == (1, 4, True)


@pytest.mark.thorough
def test_an_optimizer_that_torch_refuses_to_fuse_is_not_applicable(tmp_path, run):
    write(tmp_path, **{"lr=1e-2": "lr=1e-2, differentiable=True"})
    found = run("fused-optimizer")
    assert "torch says:" in found.refused["fused-optimizer"]


def test_what_the_program_writes_stays_in_the_scratch_folder(tmp_path, run):
    outside = tmp_path.with_name("outside.txt")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large.bin").write_bytes(b"x" * (2 << 20))
    (tmp_path / "model.pt").write_bytes(b"y" * (2 << 20))
    (tmp_path / "notes.txt").write_text("mine")
    first = f"""
    with open("data/large.bin", "r+b") as one: one.write(b"z")
    torch.save([1], "model.pt")
    open("notes.txt", "a").write("theirs")
    os.makedirs("new/folder"); open("new/folder/log", "w").close()
    assert open("data/large.bin", "rb").read(2) == b"zx" and torch.load("model.pt") == [1]
    open(os.path.join(os.path.dirname(__file__), "beside"), "w").close()
    open({str(outside)!r}, "w").close()
"""
    write(tmp_path, **{"def main():": f"def main():{first}"})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found = run()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert found.written == [str(outside)]
    outside.unlink()


def test_a_program_that_fails_is_told_by_its_error_and_its_own_folder(tmp_path, run):
    write(tmp_path, **{"def main():": "def main():\n    open('absent.txt')"})
    with pytest.raises(RunFailedError, match=r"train\.py: FileNotFoundError: .*'absent\.txt'"):
        run()
    write(tmp_path, **{"def main():": "def main():\n    return"})
    with pytest.raises(RunFailedError, match="no training step was made"):
        run()


def test_a_program_that_records_itself_is_not_recorded_while_it_is_timed(tmp_path, run):
    write(
        tmp_path, end="pass", **{"    main()\n": "    import deepscope\n    with deepscope.profile('runs'): main()\n"}
    )
    assert run().written == []
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.thorough
def test_a_module_is_run_as_python_does(tmp_path, run):
    package = tmp_path / "package"
    package.mkdir()
    write(package).rename(package / "train.py")
    (package / "__init__.py").touch()
    assert run(words=("python", "-m", "package.train")).steps == WARMUP + STEPS


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_try_prints_a_row_for_each_remedy(tmp_path, command):
    write(tmp_path)
    code, text = command("try", "DS009", "DS032", "prefetch", "--", "train.py")
    rows = {one["remedy"].partition(":")[0]: one for one in json.loads(text)["tries"]}
    assert (code, rows.keys()) == (0, {"zero-grad-to-none", "", "prefetch"})
    for one in rows.values():
        assert list(one) == [
            "finding", "remedy", "before_ns", "after_ns", "speedup", "interval", "verdict", "reason", "losses",
        ]  # fmt: skip
        assert one["verdict"] in VERDICTS
        assert one["losses"] in LOSSES
    assert rows[""]["finding"] == "DS032"
    assert rows["prefetch"]["reason"] == "the loader has no workers"
    tried = rows["zero-grad-to-none"]
    assert 0 < tried["interval"][0] < tried["speedup"] < tried["interval"][1]
    assert tried["losses"] == "identical"
    assert tried["verdict"] in {"faster", "slower", "no gain", "inconclusive"}
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_unchanged_runs_that_differ_make_losses_not_comparable(tmp_path, command):
    write(tmp_path, item="noise = int.from_bytes(os.urandom(1), 'big') / 1000")
    (row,) = json.loads(command("try", "DS009", "--", "train.py")[1])["tries"]
    assert (row["losses"], row["reason"]) == ("not comparable", "two unchanged runs have different losses")


@pytest.mark.timeout(900)
def test_verify_says_loudly_that_results_differ(tmp_path, command):
    old, new = write(tmp_path).read_text(), write(tmp_path, **{"lr=1e-2": "lr=2e-2"}).read_text()
    (tmp_path / "old.py").write_text(old)
    (tmp_path / "new.py").write_text(new)
    code, text = command("verify", "--before", "old.py", "--after", "new.py", "--", "train.py")
    (row,) = json.loads(text)["tries"]
    assert (code, row["verdict"], row["losses"]) == (3, "results differ", "different")


def git(folder: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_verify_runs_revisions_and_leaves_the_repository_as_it_was(tmp_path, command, monkeypatch):
    (tmp_path / "part").mkdir()
    (tmp_path / "helper.py").write_text("RATE = 1e-2\n")
    (tmp_path / ".gitignore").write_text("data.txt\n")
    (tmp_path / "data.txt").write_text("mine")
    start = (
        "import sys; sys.path.insert(0, '..')\nfrom helper import RATE\nassert open('../data.txt').read() == 'mine'\n"
    )
    program = write(tmp_path / "part", **{"lr=1e-2": "lr=RATE"})
    program.write_text(start + program.read_text())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    monkeypatch.chdir(tmp_path / "part")
    words = ["verify", "--before", "HEAD", "--", "train.py"]
    (tmp_path / "helper.py").write_text("RATE = 2e-2 / 2\n")
    (row,) = json.loads(command(*words)[1])["tries"]
    assert (row["losses"], row["finding"], row["remedy"]) == ("identical", "", "after (this folder)")
    assert git(tmp_path, "worktree", "list").count("\n") == 1
    assert git(tmp_path, "status", "--short") == " M helper.py\n"
    (tmp_path / "helper.py").write_text("RATE = 3e-2\n")
    code, text = command(*words)
    assert (code, json.loads(text)["tries"][0]["verdict"]) == (3, "results differ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["try", "--yes"], "no program"),
        (["try", "DS999", "--", "train.py"], "no such finding or remedy: DS999"),
        (["try", "loader-worker", "--", "train.py"], "did you mean loader-workers?"),
        (["try", "--", "train.py"], "--yes agrees"),
        (["verify", "--yes", "--", "train.py"], "--before"),
        (["verify", "--yes", "--before", "v1", "--", "train.py"], "no git repository"),
    ],
)
def test_a_wrong_use_exits_with_2(tmp_path, words, said):
    write(tmp_path)
    done = run_command(*words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
