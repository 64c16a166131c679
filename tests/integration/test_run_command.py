"""`deepscope run`: a program recorded without a change to it, and left to behave as without DeepScope around it."""

import os
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
import torch

from deepscope import load_profile
from deepscope.capture import torch_compat
from deepscope.trace.read import read_trace
from warm_python import RECORDING, run_warm

PROGRAM = """\
import pickle, sys
import torch
from helper import product

class Mine:
    pass

def main():
    weight = torch.nn.Parameter(torch.ones(64, 64))
    generator = torch.optim.SGD([weight], 1e-3)
    critic = torch.optim.SGD([weight], 1e-3)
    for _ in range(8):
        loss = product(weight).sum()
        loss.backward()
        generator.step()
        critic.step()

if __name__ == "__main__":
    print(sys.argv, __file__, type(pickle.loads(pickle.dumps(Mine()))).__module__)
    main()
    END
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "helper.py").write_text("def product(x):\n    return x @ x\n")
    return tmp_path


def write(folder: Path, end: str = "pass", program: str = PROGRAM) -> Path:
    path = folder / "train.py"
    path.write_text(program.replace("END", end))
    return path


def settings(folder: Path, *lines: str) -> None:
    """What the project says of its recordings."""
    (folder / "pyproject.toml").write_text("\n".join(["[tool.deepscope]", *lines]))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """In a process that begins with torch imported."""
    return run_warm(module="deepscope", imported=RECORDING, arguments=("run", *arguments), folder=folder, timeout_s=300)


def traces(folder: Path) -> list[Path]:
    return sorted((folder / "deepscope_logs").glob("*.pt.trace.json.gz"))


def test_a_program_is_recorded_and_its_lines_are_printed(folder):
    path = write(folder)
    done = run(folder, "train.py", "--lr", "3", "-n", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"['train.py', '--lr', '3', '-n', '5'] {path} __main__\n")
    assert "helper.py:2" in done.stdout
    (trace,) = traces(folder)
    profile = load_profile(trace, cache=False)
    assert profile.trace.program == "train.py"
    assert [step.number for step in profile.steps] == [2, 3, 4]
    lines = {(Path(line.file).name, line.line): line for line in profile.lines}
    assert lines["helper.py", 2].calls == 3
    assert {16, 17} & {line for name, line in lines if name == "train.py"}


def test_the_schedule_and_the_folder_are_chosen(folder):
    write(folder)
    done = run(folder, "--wait", "0", "--warmup", "0", "--active", "2", "--folder", "here", "-q", "train.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1  # the program's own line
    assert [step.number for step in load_profile(folder / "here", cache=False).steps] == [1, 2]


def test_a_module_is_run_as_python_does(folder):
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text(write(folder).read_text())
    done = run(folder, "--quiet", "-m", "package.train", "x")
    assert done.returncode == 0, done.stderr
    assert f"['{package / 'train.py'}', 'x']" in done.stdout
    (trace,) = traces(folder)
    assert load_profile(trace, cache=False).trace.program == "package.train"
    assert (
        run(folder, "-m", "no.such.module").stderr == "deepscope: -m no.such.module: there is no module of this name\n"
    )


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_a_folder_or_archive_with_a_main_module_is_run_as_python_does(folder, form):
    program = folder / "app"
    program.mkdir()
    write(folder).rename(program / "__main__.py")
    (folder / "helper.py").rename(program / "helper.py")
    if form == "archive":
        zipapp.create_archive(program, folder / "app.pyz")
        program = folder / "app.pyz"
    done = run(folder, "--quiet", program.name, "x")
    assert done.returncode == 0, done.stderr
    (trace,) = traces(folder)
    assert "return x @ x" in [(line.text or "").strip() for line in load_profile(trace, cache=False).lines]


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [("sys.exit('over')", 1, "over\n"), ("sys.exit()", 0, ""), ("raise ValueError('boom')", 1, "ValueError: boom\n")],
)  # fmt: skip
def test_the_program_ends_as_without_deepscope_and_its_trace_is_kept(folder, end, code, told):
    write(folder, end)
    done = run(folder, "--quiet", "train.py")
    assert done.returncode == code
    assert told in done.stderr
    assert "deepscope/cli" not in done.stderr
    assert len(traces(folder)) == 1


@pytest.mark.thorough
def test_a_program_that_ran_out_of_memory_is_told_what_was_live(folder):
    program = """\
import torch
net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    loss = net(torch.randn(256, 64)).sum()
    if step == 3:
        torch.empty(1 << 50)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    write(folder, program=program)
    done = run(folder, "--topics", "default,memory", "train.py")
    assert done.returncode == 1
    assert "RuntimeError: [enforce fail" in done.stderr
    assert "failed" in done.stdout
    (trace,) = traces(folder)
    failure = load_profile(trace).memory.failure
    kept = {row.line: row.activations_bytes for row in failure.lines}
    shown = torch_compat.shows_saved_values()  # else what autograd keeps is unknown
    assert kept[5] == failure.held.activations_bytes == (4 * 256 * 512 if shown else 0)
    assert failure.held.parameters_bytes == 4 * (64 * 512 + 512 + 512 * 64 + 64)
    assert failure.held.inputs_bytes == 4 * 256 * 64
    assert failure.error == "RuntimeError"


def test_a_program_that_records_itself_is_left_to_it(folder):
    program = PROGRAM.replace("def main():", "def main():\n    import deepscope")
    program = program.replace(
        "for _ in range(8):", "for _ in deepscope.profile('own', wait=0, warmup=0, active=2).iterate(range(8)):"
    )
    write(folder, program=program)
    done = run(folder, "train.py")
    assert done.returncode == 0, done.stderr
    assert not (folder / "deepscope_logs").exists()
    assert len(load_profile(folder / "own", cache=False).steps) == 2
    assert "nothing was recorded" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_that_makes_the_first_steps_is_recorded_and_its_parent_speaks_of_itself(folder):
    start = "multiprocessing.get_context('fork').Process(target=main)"
    main = f"child = {start}; child.start(); child.join(); sys.exit(child.exitcode)\n"
    write(
        folder,
        program=PROGRAM.replace("import pickle", "import multiprocessing, pickle").replace("main()\n    END", main),
    )
    done = run(folder, "train.py")
    assert done.returncode == 0, done.stderr
    (trace,) = traces(folder)
    assert "helper.py" in [Path(line.file).name for line in load_profile(trace, cache=False).lines]
    assert "nothing was recorded in this process: it made no step, by" in done.stderr
    assert "processes that the program starts record with deepscope.profile" in done.stderr


COMPILED = """\
import torch

def compile_graph(graph, inputs):
    print("compiled")
    return graph.forward

def main():
    weight = torch.nn.Parameter(torch.ones(8, 8))
    optimizer = torch.optim.SGD([weight], 1e-3)

    @torch.compile(backend=compile_graph)
    def update():
        optimizer.step()

    for _ in range(6):
        (weight @ weight).sum().backward()
        update()

main()
"""


@pytest.mark.timeout(600)  # two processes that read all of the compiler's modules: minutes, from a slow disk
@pytest.mark.skipif(not torch._dynamo.is_dynamo_supported(), reason="this torch cannot compile on this Python")
@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3),
    reason=f"torch {torch.__version__} cannot call the hooks of a step that it has compiled",
)
def test_a_compiled_step_of_the_optimizer_ends_a_step_and_nothing_more_is_compiled(folder):
    path = write(folder, program=COMPILED)
    command = [sys.executable, str(path)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as plain:
        done = run(folder, "-q", "train.py")
        compiled, error = plain.communicate()
    assert plain.returncode == 0, error
    assert done.returncode == 0, done.stderr
    assert "compiled" in compiled
    assert done.stdout == compiled
    (trace,) = traces(folder)
    assert [step.number for step in load_profile(trace, cache=False).steps] == [2, 3, 4]


@pytest.mark.skipif(
    not hasattr(torch.autograd, "_engine_run_backward"),
    reason=f"torch {torch.__version__} has no function that all backward passes go through",
)
def test_without_an_optimizer_each_backward_pass_ends_a_step(folder):
    program = """
import torch
from torch.utils.checkpoint import checkpoint
from helper import product

@torch.compile(backend="aot_eager")
def scaled(x):
    return 2 * x

weight = torch.nn.Parameter(torch.ones(64, 64))
for _ in range(9):
    inner = weight.square().sum()
    (slope,) = torch.autograd.grad(inner, weight, create_graph=True)
    (checkpoint(product, weight, use_reentrant=True).sum() + scaled(slope).sum()).backward()
    with torch.no_grad():
        weight -= 1e-3 * weight.grad
    weight.grad = None
"""
    path = write(folder, program=program)
    done = run(folder, path.name)
    assert done.returncode == 0, done.stderr
    (trace,) = traces(folder)
    profile = load_profile(trace, cache=False)
    assert [step.number for step in profile.steps] == [2, 3, 4]
    updates = next(line for line in profile.lines if line.line == 16)
    assert updates.calls == 3
    assert profile.whole_run.steps == 5  # behind the fourth backward pass


def test_gradients_that_are_summed_up_end_no_step(folder):
    program = """
import torch
from helper import product

weight = torch.nn.Parameter(torch.ones(64, 64))
optimizer = torch.optim.SGD([weight], 1e-3)
for batch in range(8 * 6):
    product(weight).sum().backward()
    if batch % 6 == 5:
        optimizer.step()
"""
    path = write(folder, program=program)
    done = run(folder, path.name)
    assert done.returncode == 0, done.stderr
    (trace,) = traces(folder)
    lines = {(Path(line.file).name, line.line): line for line in load_profile(trace, cache=False).lines}
    assert lines["helper.py", 2].calls == 3 * 6


def test_a_program_without_an_optimizer(folder):
    (folder / "infer.py").write_text("import torch\nfrom helper import product\nproduct(torch.ones(64, 64))\n")
    done = run(folder, "infer.py")
    assert done.returncode == 0
    assert "--whole" in done.stderr
    assert not traces(folder)
    done = run(folder, "--whole", "infer.py")
    assert done.returncode == 0
    assert "helper.py:2" in done.stdout


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="counters of /proc")
def test_a_window_by_time_of_a_whole_run_that_is_counted(folder):
    (folder / "infer.py").write_text(
        "import time, torch\nfrom helper import product\nuntil = time.monotonic() + 3\n"
        "while time.monotonic() < until:\n    product(torch.ones(64, 64))\n"
    )
    settings(folder, 'counter_interval = 0.01\ncounters = "run"')
    options = ("--whole", "--time", "0.2", "--after", "500ms", "-q")
    done = run(folder, *options, "infer.py")
    assert done.returncode == 0, done.stderr
    (path,) = (folder / "deepscope_logs").glob("*.counters")
    counted = read_trace(path).counters
    (trace,) = traces(folder)
    assert int(counted.ts_ns.max()) - int(counted.ts_ns.min()) > 2e9  # not of the window alone
    assert read_trace(trace).counters is not None


@pytest.mark.thorough
def test_a_process_alone_that_was_not_chosen_is_told(folder):
    write(folder)
    done = run(folder, "--rank", "9", "train.py")
    assert done.returncode == 0
    assert "nothing was recorded: --rank does not name rank 0" in done.stderr
    assert not traces(folder)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [(["missing.py"], 1, "deepscope: missing.py: cannot be read (No such file or directory)\n"),
     (["."], 1, "deepscope: .: cannot be read (Is a directory)\n"),
     (["--actve", "3", "train.py"], 2, "No such option '--actve'"),
     (["--warmup", "90s", "train.py"], 2, "'90s' is not a valid integer range"),
     (["--time", "0", "train.py"], 2, "'0' is no time above 0"),
     (["--after", "2m", "train.py"], 2, "--after goes with --time"),
     (["--time", "3", "--active", "3", "train.py"], 2, "--active counts steps, and --time records by the clock"),
     (["--whole", "--active", "3", "train.py"], 2, "--active counts steps, and --whole has none"),
     (["--whole", "--warmup", "2", "train.py"], 2, "--warmup counts steps, and --whole has none"),
     (["bad.py"], 1, "SyntaxError")],
)  # fmt: skip
def test_what_cannot_be_run_is_told_in_a_line(folder, arguments, code, told):
    (folder / "bad.py").write_text("x = (\n")
    done = run(folder, *arguments)
    assert done.returncode == code
    # click before 8.2 writes a colon in the place of the quotes.
    assert told in done.stderr.replace("No such option: --actve", "No such option '--actve'")
    assert "deepscope/" not in done.stderr


LOADING = """\
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.03)  # row
        return torch.full((8,), float(index))

def main(workers, method=None):
    loader = DataLoader(Rows(), batch_size=4, num_workers=int(workers), multiprocessing_context=method)
    weight = torch.nn.Parameter(torch.ones(8))
    optimizer = torch.optim.SGD([weight], 1e-3)
    for batch in START:
        (batch @ weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.mark.parametrize("arguments", [("2",), pytest.param(("2", "spawn"), marks=pytest.mark.thorough)], ids="-".join)
def test_workers_that_start_before_the_first_step_are_recorded_and_counted(folder, arguments):
    write(folder, program=LOADING.replace("START", "loader"))
    done = run(folder, "--active", "12", "train.py", *arguments)
    assert done.returncode == 0, done.stderr
    (trace,) = traces(folder)
    profile = load_profile(trace, cache=False)
    (found,) = [finding for finding in profile.findings if finding.code == "DS003"]
    assert "more than its 2 workers" in found.remedy.text
    (row,) = [line for line in profile.lines if (line.text or "").endswith("# row")]
    assert row.worker_ns > 10 * row.worker_cpu_ns > 0, "it sleeps"


@pytest.mark.thorough
def test_workers_of_a_program_that_records_itself_report_to_its_own_recording(folder):
    program = "import deepscope\n" + LOADING.replace("START", "deepscope.profile('own').iterate(loader)")
    write(folder, program=program)
    done = run(folder, "train.py", "2")
    assert done.returncode == 0, done.stderr
    assert load_profile(folder / "own", cache=False).totals.worker_ns > 0


@pytest.mark.thorough
def test_the_project_says_what_seldom_changes(folder):
    write(folder)
    settings(folder, 'source = "none"', "record_shapes = true", "max_slowdown = 3")
    done = run(folder, "-q", "train.py")
    assert done.returncode == 0, done.stderr
    profile = load_profile(traces(folder)[0], cache=False)
    assert all(file.text is None and not file.sha256 for file in profile.files.values())
    assert profile.totals.flops > 0


def test_a_setting_that_cannot_be_used_is_told_in_one_line_before_the_program_runs(folder):
    write(folder)
    settings(folder, "max_slowdown = 0.5")
    done = run(folder, "train.py")
    assert (done.returncode, done.stdout) == (1, "")
    path = folder / "pyproject.toml"
    assert done.stderr == (
        f"deepscope: {path}: [tool.deepscope] max_slowdown = 0.5: must be a number above 1, such as 2\n"
    )


@pytest.mark.thorough
def test_topics_and_a_template_of_names_and_nothing_breaks_into_the_optimizers_step(folder):
    path = write(folder)
    settings(folder, 'filename = "{program}-{stage}-{rank:02}"', "modules = true")
    done = run(folder, "-q", "--topics", "lines,memory", str(path))
    assert done.returncode == 0, done.stderr  # memory is watched from within the optimizer's own hooks on
    assert [one.name.partition(".")[0] for one in traces(folder)] == ["train-00"]
    configuration = read_trace(traces(folder)[0]).header.configuration
    assert configuration is not None
    assert (configuration.profile_memory, configuration.lines, configuration.modules) == (True, True, False)


def test_a_wrong_topic_is_told_before_the_program_runs(folder):
    done = run(folder, "--topics", "lins", str(write(folder, end="print('ran')")))
    assert done.returncode == 2
    assert "ran" not in done.stdout
    assert done.stderr.startswith("deepscope: --topics lins: there is no topic 'lins'; there are: lines, ")
    assert done.stderr.count("\n") == 1


EVALUATED = """\
import torch
from helper import product

net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), 1e-2)

def evaluate():
    net.eval()
    with torch.no_grad():
        for _ in range(40):
            product(torch.ones(64, 64))
    net.train()

for step in range(20):
    if step == 6:
        evaluate()
    net(torch.ones(64, 64)).square().mean().backward()
    optimizer.step()
END
"""


@pytest.mark.parametrize("wait", [1, 2, 3, 4, 5])
def test_an_evaluation_between_two_steps_is_part_of_none(wait: int, folder: Path):
    write(folder, program=EVALUATED)
    settings(folder, 'counters = "off"')
    done = run(folder, "--audit", "--wait", str(wait), "train.py")
    assert done.returncode == 0, done.stderr
    (trace,) = traces(folder)
    profile = load_profile(trace, cache=False)
    assert not [line for line in profile.lines if Path(line.file).name == "helper.py"]
    assert profile.totals.steps == {3: 2, 4: 1}.get(wait, 3)  # the window ends, or has yet to begin, with the sixth
    assert profile.audit is not None
    assert profile.audit.steps == 2


UNLIKE = """\
import time
import torch
from deepscope.capture.whole_run.further_windows import StepRhythm
from helper import product

net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), 1e-2)
opened = []

def add(rhythm, length_ns):  # the steps' lengths are the machine's
    if step % 6 == 3:
        opened.append(step)
        return 6

StepRhythm.add = add
for step in range(20_000):
    time.sleep(1e-3)
    if step % 6 == 5:
        product(torch.ones(32, 32))
    net(torch.ones(64, 64)).square().mean().backward()
    optimizer.step()
    if opened and step > opened[0] + 20:
        break
END
"""


def test_a_second_window_has_the_steps_that_are_not_like_those_of_the_first(folder: Path):
    write(folder, program=UNLIKE)
    settings(folder, 'counters = "off"')
    done = run(folder, "train.py")
    assert done.returncode == 0, done.stderr
    first, second = (load_profile(trace, cache=False) for trace in sorted(traces(folder)))
    assert (first.trace.window, second.trace.window) == (0, 1)
    assert [step.number % 6 for step in second.steps] == [5, 0, 1, 2, 3, 4]
    [product] = [line for line in second.lines if Path(line.file).name == "helper.py"]
    assert product.calls == 1
    assert Path(second.trace.path).name in done.stdout.replace("\n", "")  # what is shown


UNTRAINED = """\
import sys
import torch
from torch.utils.data import DataLoader
from helper import product

net = torch.nn.Linear(64, 64).eval()
loader = DataLoader(torch.ones(int(sys.argv[2]), 64), 16)
if sys.argv[1] == "around":
    with torch.inference_mode():
        for batch in loader:
            net(batch)
else:
    for batch in loader:
        with torch.no_grad():
            net(batch)
if sys.argv[1] == "before training":
    optimizer = torch.optim.SGD(net.parameters(), 1e-2)
    for batch in loader:
        net(batch).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("way", "line"), [("around", 11), ("within", 15), ("before training", 15)])
def test_a_loaders_batches_are_steps_where_nothing_trains(way: str, line: int, folder: Path):
    write(folder, program=UNTRAINED)
    done = run(folder, "train.py", way, "320")
    assert done.returncode == 0, done.stderr
    written = {path.name.split(".")[1]: load_profile(path, cache=False) for path in traces(folder)}
    assert set(written) == ({"predict", "rank0"} if way == "before training" else {"predict"})
    for stage, row in {"predict": line, "rank0": 20}.items():
        if stage in written:
            assert written[stage].totals.steps == 3
            assert {one.line: one.calls for one in written[stage].lines if one.file.endswith("train.py")}[row] == 3


def test_a_short_pass_over_a_loader_is_no_evaluation(folder: Path):
    write(folder, program=UNTRAINED)
    done = run(folder, "train.py", "within", "64")
    assert done.returncode == 0
    assert "--whole" in done.stderr
    assert not traces(folder)


AUDITED = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.head = nn.Linear(512, 4)

    def forward(self, x):
        features = self.backbone(x)
        return self.head(features)

torch.manual_seed(3)
net = Net()
optimizer = torch.optim.SGD(net.head.parameters(), 1e-2)
for _ in range(9):
    optimizer.zero_grad()
    net(torch.randn(64, 64)).square().mean().backward()
    optimizer.step()
print("sum", sum(one.double().sum().item() for one in net.parameters()))
END
"""


def test_audit_finds_what_nobody_needs_and_changes_nothing_of_the_result(folder: Path):
    write(folder, program=AUDITED)
    plain = run(folder, "-q", "train.py")
    audited = run(folder, "--audit", "--folder", "looked", "train.py")
    assert plain.stdout.splitlines()[0] == audited.stdout.splitlines()[0]
    assert "DS033  train.py:11 Gradients that nobody uses" in audited.stdout
    assert "audit  2 steps were looked at" in audited.stdout
    profile = load_profile(folder / "looked")
    assert profile.totals.steps == 3
    assert profile.audit is not None


def test_the_report_asks_for_an_audit_where_none_was_made(folder: Path):
    write(folder, program=AUDITED)
    done = run(folder, "train.py")
    assert "DS033" not in done.stdout
    assert "deepscope run --audit" in " ".join(done.stdout.split())


@pytest.mark.parametrize("option", ["--whole", "--on-demand"])
def test_an_audit_needs_steps_that_this_recording_counts(option: str, folder: Path):
    write(folder, program=AUDITED)
    done = run(folder, "--audit", option, "train.py")
    assert done.returncode == 2
    assert "--audit" in done.stderr
