"""DS003, data loading on the critical path."""

from __future__ import annotations

from typing import Any

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def steps(
    loading: int,
    *,
    kernel: int | None = 400,
    count: int = 3,
    iterator: str = "_SingleProcessDataLoaderIter",
    phase: str = "",
    **metadata: Any,
) -> TraceBuilder:
    """Steps of 1,000 µs: `loading` µs in the loader at line 2, then work at line 3, by a kernel from 500 µs on or, for
    None, on the CPU."""
    builder = TraceBuilder(**metadata)
    for number in range(count):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, loading * US)
        builder.line(FILE, 3, "main", at + loading * US, (1000 - loading) * US)
        builder.annotation(phase or f"enumerate(DataLoader)#{iterator}.__next__", at, loading * US)
        if kernel is None:
            builder.op("aten::mm", at + 600 * US, 300 * US)
        else:
            builder.kernel("gemm", at + 495 * US, at + 500 * US, kernel * US)
    return builder


def test_loading_while_the_device_is_idle_is_found_at_its_line(findings_of):
    (found,) = findings_of(steps(450), "DS003")
    assert (found.file, found.line) == (FILE, 2)
    assert found.evidence == {"loading_ns": 1350 * US, "batches": 3, "device_idle_ns": 1350 * US}
    assert found.saving_ns == 1350 * US
    assert "num_workers" in found.remedy.text


MULTI = "_MultiProcessingDataLoaderIter"


@pytest.mark.parametrize(("workers", "words"), [(0, "Load in other processes"), (3, "more than its 3 workers")])
def test_the_advice_knows_how_many_workers_are_set(findings_of, workers, words):
    """A loader whose name in the trace tells nothing: its settings do."""
    settings = {"loaders": [{"num_workers": workers, "batch_size": 8}]}
    built = steps(450, phase="enumerate(DataLoader)#MyIterator.__next__", deepscope={"format": 2, "settings": settings})
    (found,) = findings_of(built, "DS003")
    assert words in found.remedy.text


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({"cores": 2}, "2 cores are there"),
        ({"cores": 64, "container": {"cpus": 3.5}}, "3 cores are there"),
        ({"cores": 64, "container": {"cpus": 0.5}}, "one core"),
    ],
)
def test_the_advice_names_the_cores_that_there_are(findings_of, counters, words):
    (found,) = findings_of(steps(450, deepscope={"counters": counters}), "DS003")
    assert words in found.remedy.text
    assert "4" not in found.remedy.text


def test_workers_for_all_cores_are_not_asked_to_be_more(findings_of):
    settings = {"loaders": [{"num_workers": 4, "batch_size": 8}]}
    header = {"settings": settings, "counters": {"cores": 4}}
    (found,) = findings_of(steps(450, iterator=MULTI, deepscope=header), "DS003")
    assert "more" not in found.remedy.text
    assert found.remedy.text.startswith("Its 4 workers have 4 cores")


def test_the_users_line_that_makes_the_batches_is_named(findings_of):
    builder = steps(450)
    for number in range(3):
        builder.line(FILE, 20, "collate", (number * 1000 + 10) * US, 400 * US)
    (found,) = findings_of(builder, "DS003")
    assert (found.line, found.function) == (20, "collate")
    assert found.remedy.text.startswith("Make line 20 (collate) cheaper")


def test_what_the_users_line_calls_says_how_to_make_it_cheaper(findings_of):
    builder = steps(450)
    for number in range(3):
        builder.line(FILE, 20, "__getitem__", (number * 1000 + 10) * US, 400 * US)
    builder.files[0]["text"] = "\n" * 19 + "row = self.frame.iloc[index]\n"
    (found,) = findings_of(builder, "DS003")
    words, rest = found.remedy.text.split(": most of the loading is spent there. ")
    assert words == "Make line 20 (__getitem__) cheaper"
    assert rest.startswith("A row of a DataFrame is made anew each time")
    assert "num_workers" in rest


def test_what_was_taken_of_a_row_of_a_dataframe_is_as_slow_as_the_row(findings_of):
    builder = steps(450)
    for number in range(3):
        builder.line(FILE, 20, "__getitem__", (number * 1000 + 10) * US, 400 * US)
    text = "def __getitem__(self, i):\n    row = self.frame.iloc[i]\n    x = torch.tensor(row[names].values)\n"
    builder.files[0]["text"] = "\n" * 17 + text
    (found,) = findings_of(builder, "DS003")
    assert "A row of a DataFrame is made anew each time" in found.remedy.text


@pytest.mark.parametrize(
    ("taken", "text", "is_named"),
    [
        (140, "row = self.metadata.iloc[index]", True),
        (60, "row = self.metadata.iloc[index]", False),
        (140, "label = torch.tensor(self.labels[index])", False),
        (140, "label = self.labels[index]", False),
    ],
)
def test_a_line_that_is_known_to_cost_much_is_named_before_a_slower_one_without_a_remedy(
    findings_of, taken: int, text: str, is_named: bool
):
    builder = steps(450)
    for number in range(3):
        at = number * 1000 + 10
        builder.line(FILE, 20, "__getitem__", at * US, taken * US)
        builder.line(FILE, 30, "standardise", (at + taken) * US, (400 - taken) * US)
    builder.files[0]["text"] = "\n" * 19 + f"{text}\n" + "\n" * 9 + "return (x - x.mean()) / x.std()\n"
    (found,) = findings_of(builder, "DS003")
    assert found.line == (20 if is_named else 30)
    assert ("about 31% of the loading is spent there. A row of a DataFrame" in found.remedy.text) == is_named
    assert found.remedy.text.startswith(f"Make line {found.line} ")
    assert found.saving_ns == 1350 * US


@pytest.mark.parametrize(("backend", "named"), [("settrace", 20), ("monitoring", 30)])
def test_half_of_what_slow_hooks_took_of_a_line_counts_for_it(findings_of, backend: str, named: int):
    builder = steps(450, kernel=None, deepscope={"lines": {"backend": backend, "entries": 9}})
    for number in range(3):
        at = number * 1000 + 10
        builder.line(FILE, 20, "__getitem__", at * US, 240 * US)
        builder.event("python_recording", f"@dr:{230 * US}", at * US + 1, 1, recording_ns=230 * US)
        builder.line(FILE, 30, "standardise", (at + 240) * US, 160 * US)
    builder.files[0]["text"] = "\n" * 19 + "row = self.metadata.iloc[index]\n"
    (found,) = findings_of(builder, "DS003")
    assert found.line == named


def test_reading_of_a_slow_row_counts_for_the_line_that_makes_it(findings_of):
    builder = steps(450)
    for number in range(3):
        at = number * 1000 + 10
        for line, start, took in ((20, 0, 50), (21, 50, 45), (30, 95, 305)):
            builder.line(FILE, line, "__getitem__", (at + start) * US, took * US)
    text = "def __getitem__(self, index):\n    row = self.metadata.iloc[index]\n    y = int(row['target'])\n"
    builder.files[0]["text"] = "\n" * 18 + text + "\n" * 8 + "    return (x - x.mean()) / x.std()\n"
    (found,) = findings_of(builder, "DS003")
    assert found.line == 20
    assert "about 21% of the loading is spent there and on what needs the same (21)." in found.remedy.text


@pytest.mark.parametrize(("runs", "is_said"), [(200, True), (20, False)])
def test_a_loop_over_numbers_wants_whole_arrays(runs: int, is_said: bool, findings_of):
    builder = steps(450)
    each = 400 * US // runs
    for number in range(3):
        for run in range(runs):
            builder.line(FILE, 20, "__getitem__", (number * 1000 + 10) * US + run * each, each)
    builder.files[0]["text"] = (
        "\n" * 17 + "def __getitem__(self, i):\n    for x in range(n):\n        out[x] = a[x] * 2\n"
    )
    (found,) = findings_of(builder, "DS003")
    assert ("number by number" in found.remedy.text) == is_said


def test_a_line_with_a_remedy_of_its_own_may_be_saved_as_a_whole(findings_of):
    """Processes would save what could run beside the rest, and that is measured; the remedy saves the line, at most."""
    builder = steps(900, kernel=None)
    for number in range(3):
        builder.line(FILE, 20, "__getitem__", (number * 1000 + 10) * US, 800 * US)
    (processes,) = findings_of(builder, "DS003")
    assert processes.is_measured
    assert processes.saving_ns == 3 * 450 * US
    builder.files[0]["text"] = "\n" * 19 + "row = self.frame.iloc[index]\n"
    (line,) = findings_of(builder, "DS003")
    assert not line.is_measured
    assert line.saving_ns == 3 * 800 * US


@pytest.mark.parametrize(
    ("dataset", "words"),
    [("torch.utils.data.dataset.TensorDataset", "whole batches"), ("datasets.arrow_dataset.Dataset", "Array3D")],
)
def test_samples_taken_one_by_one_from_memory_want_whole_batches_or_arrays_and_no_processes(
    findings_of, dataset: str, words: str
):
    settings = {"loaders": [{"dataset": dataset}], "frameworks": ["transformers.Trainer"]}
    builder = steps(450, kernel=None, deepscope={"settings": settings})
    for number in range(3):
        for sample in range(64):
            builder.op("aten::select", (number * 1000 + 5 + 6 * sample) * US, 3 * US)
    (found,) = findings_of(builder, "DS003")
    assert words in found.remedy.text
    assert "num_workers" not in found.remedy.text


@pytest.mark.parametrize(("batch_size", "operators", "is_found"), [(0, 12, False), (8, 12, True), (0, 40, True)])
def test_batches_that_few_operators_cut_from_memory_are_well_as_they_are(
    batch_size: int, operators: int, is_found: bool, findings_of
):
    settings = {"loaders": [{"dataset": "torch.utils.data.dataset.TensorDataset", "batch_size": batch_size}]}
    builder = steps(300, kernel=None, deepscope={"settings": settings})
    for number in range(3):
        for one in range(operators):
            builder.op("aten::index", (number * 1000 + 5 + 6 * one) * US, 3 * US)
    assert bool(findings_of(builder, "DS003")) == is_found


def test_a_few_lines_that_make_most_of_the_batches_together_are_named(findings_of):
    builder = steps(450, kernel=None)
    for number in range(3):
        builder.line(FILE, 20, "Rows.__getitem__", (number * 1000 + 10) * US, 200 * US)
        builder.line(FILE, 30, "collate", (number * 1000 + 210) * US, 210 * US)
    (found,) = findings_of(builder, "DS003")
    assert found.remedy.text.startswith(
        "Make lines 30 (collate) and 20 (Rows.__getitem__) cheaper: most of the loading"
    )
    assert "made once, and kept" in found.remedy.text
    builder.files[0]["text"] = "\n" * 29 + "return torch.tensor([row['mask'] for row in rows])\n"
    (found,) = findings_of(builder, "DS003")
    assert "lists go number by number" in found.remedy.text


@pytest.mark.parametrize(("own", "below", "is_said"), [(300, 300, True), (150, 300, False)])
def test_a_loop_over_calls_that_take_most_of_its_time_is_not_about_numbers(own, below, is_said, findings_of):
    builder = collated(own=own, below=below)
    text = [
        "def collate(rows):",
        "    for row in rows:",
        "        stack(row)",
        *[""] * 6,
        "def stack(row):",
        *["    x = 1"] * 5,
    ]
    builder.files[0]["text"] = "\n" * 19 + "\n".join(text)
    (found,) = findings_of(builder, "DS003")
    assert "Make collate (train.py:1) cheaper" in found.remedy.text
    assert ("number by number" in found.remedy.text) == is_said


def test_an_iterator_made_for_each_batch_is_the_cause_and_workers_are_not_asked_for(findings_of):
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, 450 * US)
        builder.op("aten::empty", at + 2 * US, 2 * US).op("aten::random_", at + 5 * US, 2 * US)
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        builder.annotation(name, at + 10 * US, 440 * US)
        builder.line(FILE, 3, "main", at + 450 * US, 550 * US).op("aten::mm", at + 600 * US, 300 * US)
    (found,) = findings_of(builder, "DS003")
    assert found.remedy.text.startswith("Make the iterator once")
    assert "num_workers" not in found.remedy.text


def test_loading_while_the_device_still_works_costs_only_what_is_left(findings_of):
    (found,) = findings_of(steps(450, kernel=700), "DS003")
    # The kernel of the step before runs until 1,200 µs; the first step has none before it.
    assert found.evidence["device_idle_ns"] == (450 + 2 * 250) * US


def test_loading_that_the_device_hides_is_not_found(findings_of):
    assert findings_of(steps(100, kernel=600), "DS003") == []
    assert findings_of(steps(40), "DS003") == []


def test_on_the_cpu_loading_could_run_beside_the_rest_but_no_longer_than_that_takes(findings_of):
    (found,) = findings_of(steps(300, kernel=None), "DS003")
    assert found.saving_ns == 900 * US
    (found,) = findings_of(steps(580, kernel=None), "DS003")
    assert found.saving_ns == 3 * 420 * US
    assert "device" not in found.message


def test_on_the_cpu_more_processes_would_halve_loading_that_takes_nearly_all_of_the_time(findings_of):
    (found,) = findings_of(steps(970, kernel=None, iterator="_MultiProcessingDataLoaderIter"), "DS003")
    assert found.saving_ns == 3 * 485 * US


@pytest.mark.parametrize("kernel", [400, None])
def test_what_recording_the_loaders_lines_took_is_not_the_loaders(findings_of, kernel: int | None):
    builder = steps(450, kernel=kernel, deepscope={"lines": {"cost_ns": 1 * US}})
    for number in range(3):
        for entry in range(300):
            builder.line(FILE, 9, "row", (number * 1000 + 10 + entry) * US, 1 * US)
    (found,) = findings_of(builder, "DS003")
    # But for rounding by the run.
    assert found.saving_ns == pytest.approx(3 * (450 - 301) * US, rel=1e-4)  # line 2 is entered once, line 9 300 times


def collated(*, own: int, below: int) -> TraceBuilder:
    """Steps of which 800 µs load: a collate function at 20 that calls one at 30 for each sample, and `__getitem__`."""
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, 800 * US)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 800 * US)
        rest = 780 - own - below
        for line in (11, 12):
            builder.line(FILE, line, "Rows.__getitem__", at + 10 * US + (line - 11) * rest * US // 2, rest * US // 2)
        start = at + (10 + rest) * US
        builder.line(FILE, 21, "collate", start, own * US)
        builder.line(FILE, 22, "collate", start + own * US, below * US)
        for line in range(31, 35):
            builder.line(FILE, line, "stack", start + own * US + (line - 31) * below * US // 4, below * US // 4)
        builder.line(FILE, 3, "main", at + 800 * US, 200 * US).op("aten::mm", at + 820 * US, 150 * US)
    return builder


@pytest.mark.parametrize(
    ("own", "below", "named"),
    [
        (80, 500, "Make stack (train.py:1) cheaper"),
        (300, 300, "Make collate (train.py:1) cheaper"),
        (100, 200, "Make Rows.__getitem__ (train.py:1) cheaper"),
    ],
)
def test_where_no_line_makes_most_of_the_batches_the_function_that_does_is_named(findings_of, own, below, named):
    (found,) = findings_of(collated(own=own, below=below), "DS003")
    assert named in found.remedy.text
    assert "num_workers" in found.remedy.text


@pytest.mark.parametrize(
    ("collate", "stack", "words"),
    [
        ("ids = [tokenizer.encode(row) for row in rows]", "with rows:", "Tokenize once before training"),
        ("batch = stack(rows)", "for row in rows:", "number by number"),
        ("batch = stack(rows)", "with rows:", "made once, and kept"),
    ],
)
def test_how_the_slowest_function_gets_cheaper_is_known_by_the_line_that_calls_it_or_by_its_loop(
    findings_of, collate, stack, words
):
    builder = collated(own=80, below=500)
    text = [
        "def collate(rows):",
        "    x = 1",
        f"    {collate}",
        *[""] * 6,
        "def stack(rows):",
        f"    {stack}",
        *["        x = 1"] * 4,
    ]
    builder.files[0]["text"] = "\n" * 19 + "\n".join(text)
    (found,) = findings_of(builder, "DS003")
    assert words in found.remedy.text


def test_the_slowest_line_gets_cheaper_by_how_its_function_is_called(findings_of):
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 2, "main", at, 800 * US)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 800 * US)
        builder.line(FILE, 22, "collate", at + 10 * US, 700 * US).line(FILE, 31, "encode", at + 20 * US, 680 * US)
        builder.line(FILE, 3, "main", at + 800 * US, 200 * US).op("aten::mm", at + 820 * US, 150 * US)
    text = ["def collate(rows):", "    x = 1", "    ids = tokenizer.encode(rows)", *[""] * 6, "def encode(rows):"]
    builder.files[0]["text"] = "\n" * 19 + "\n".join([*text, "    ids = []", "    y = 1"])
    (found,) = findings_of(builder, "DS003")
    assert found.remedy.text.startswith("Make line 31 (encode) cheaper")
    assert "Tokenize once before training" in found.remedy.text


def test_a_model_that_runs_below_the_line_that_asks_for_batches_makes_none(findings_of):
    """As where a trainer's one line asks for batches and calls the model."""
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + US, 298 * US)
        for line in range(20, 26):
            builder.line(FILE, line, "collate", at + (2 + 49 * (line - 20)) * US, 48 * US)
        for line in range(50, 56):
            builder.line(FILE, line, "forward", at + (310 + 100 * (line - 50)) * US, 99 * US)
    builder.line(FILE, 2, "main", 0, 3000 * US)
    (found,) = findings_of(builder, "DS003")
    assert "Make collate (train.py:1) cheaper" in found.remedy.text


def off_cpu(builder: TraceBuilder, off_us: int, core_us: int = 0) -> TraceBuilder:
    """Marks of the recorder, in the requests of `steps`: so long off the CPU, and so long of it without a core."""
    for number in range(3):
        name = f"@do:{off_us * US}:{core_us * US}"
        builder.event("python_off_cpu", name, (number * 1000 + 449) * US, 1, off_cpu_ns=off_us * US)
    return builder


@pytest.mark.parametrize("kernel", [400, None])
def test_workers_that_are_not_waited_for_are_not_asked_to_be_more(findings_of, kernel):
    """The training thread takes the batch that is there, and waits for a core."""
    assert findings_of(off_cpu(steps(450, kernel=kernel, iterator=MULTI), 440, 440), "DS003") == []


@pytest.mark.parametrize("kernel", [400, None])
def test_more_workers_save_what_workers_are_waited_for(findings_of, kernel):
    (found,) = findings_of(off_cpu(steps(450, kernel=kernel, iterator=MULTI), 200), "DS003")
    assert found.saving_ns == 3 * 200 * US


def test_loading_that_waits_for_a_core_is_not_promised_to_go_beside_the_rest(findings_of):
    (found,) = findings_of(off_cpu(steps(450, kernel=None), 300, 300), "DS003")
    assert found.saving_ns == 3 * 150 * US


def test_with_workers_their_number_and_their_slowest_line_are_named(findings_of):
    lines = [[0, 30, "Data.__getitem__", 500 * US, 10, 400 * US], [0, 40, "collate", 800 * US, 10, 90 * US]]
    workers = [{"pid": 7, "worker_id": 0, "num_workers": 3, "wall_ns": 1300 * US, "lines": lines}]
    (found,) = findings_of(steps(450, iterator=MULTI, deepscope={"workers": workers}), "DS003")
    assert found.evidence["worker_ns"] == 1300 * US
    assert found.evidence["worker_cpu_ns"] == 490 * US
    assert "more than its 3 workers" in found.remedy.text
    assert "collate, line 40" in found.remedy.text


def test_workers_that_were_not_timed_are_not_taken_for_none(findings_of):
    (found,) = findings_of(steps(450, iterator=MULTI), "DS003")
    assert found.remedy.text.startswith("Give it more workers (`num_workers`)")
    assert "was not recorded" in found.remedy.text
    assert "num_workers=" not in found.remedy.text


def test_where_the_trace_does_not_know_of_workers_the_advice_says_so(findings_of):
    (found,) = findings_of(steps(450, phase="[pl][profile]run_training_epoch.train_dataloader_next"), "DS003")
    assert "does not say how many" in found.remedy.text
    assert "num_workers=" not in found.remedy.text


def test_without_a_data_phase_there_is_nothing_to_find(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 2, "main", 0, 1000 * US)
    assert findings_of(builder.kernel("gemm", 1, 900 * US, 50 * US), "DS003") == []
