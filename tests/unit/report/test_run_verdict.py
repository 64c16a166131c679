"""The verdict on a run: the largest part of a step, how much it is, and the line that has most of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from built_profiles import MODEL, MS, TRAIN, line, training
from deepscope.records import (
    CompiledFunction,
    CriticalLine,
    CriticalPath,
    OverviewRow,
    Profile,
    RunEpoch,
    RunPart,
    RunPause,
    WholeRun,
    Why,
    key_figures,
)
from deepscope.report.run_verdict import run_verdict
from deepscope.report.text_report import evaluation_text
from deepscope.report.whole_run import run_rows
from recorded_traces import each_trace, profile_of


def run(parts: dict[str, int], **changes: Any) -> Profile:
    """A run of two steps of 100 ms with these milliseconds in the parts of both, and these lines."""
    profile = training()
    profile.memory.failure = None
    profile.lines = []
    profile.findings = []
    profile.framework = []
    profile.totals.steps, profile.totals.wall_ns = 2, 200 * MS
    busy = sum(parts.get(name, 0) for name in ("kernel", "communication"))
    profile.totals.busy_ns, profile.totals.idle_ns = busy * MS, (200 - busy) * MS
    profile.overview = [
        OverviewRow(section="step", name=name, time_ns=time * MS, whole_ns=200 * MS) for name, time in parts.items()
    ]
    for name, value in changes.items():
        setattr(profile, name, value)
    return profile


LOADING = line(TRAIN, 2, "main", 0, idle_ns=80 * MS, why=Why(data_ns=80 * MS))
WORKING = line(MODEL, 7, "Net.forward", 90 * MS, verdict="compute-bound")


def test_waiting_for_data_is_named_with_the_loading_line_and_what_else_takes_long() -> None:
    said = run_verdict(run({"kernel": 100, "data loader": 80, "CPU": 20}, lines=[WORKING, LOADING]))
    assert (said.cause, said.share, said.file, said.line) == ("data", 0.4, TRAIN, 2)
    assert said.sentence == (
        "Waits for data: 40.0% of each step, from train.py:2; the device is busy for 50.0%, at nets/model.py:7."
    )


def test_where_the_training_thread_loads_itself_the_place_is_the_line_that_loads_most() -> None:
    """On the CPU the line that costs most may be another, and it may load, too."""
    lines = [
        line(TRAIN, 9, "step", 80 * MS),
        line(MODEL, 3, "__getitem__", 0, python_ns=60 * MS),
        line(MODEL, 4, "__getitem__", 0, python_ns=70 * MS, framework_ns=0),
    ]
    path = [
        CriticalLine(file=one.file, line=one.line, function=one.function, exact=one.exact, critical_ns=ns, data_ns=ns)
        for one, ns in zip(lines[1:], (60 * MS, 50 * MS), strict=True)
    ]
    profile = run({"data loader": 120, "CPU": 80}, lines=lines, metric="cpu_self", critical=CriticalPath(lines=path))
    said = run_verdict(profile)
    assert (said.cause, said.file, said.line) == ("data", MODEL, 3)
    assert said.sentence == (
        "Waits for data: 60.0% of each step, from nets/model.py:3; operators and Python take 40.0%, at train.py:9."
    )
    (advice,) = training().findings[:1]
    profile.findings = [structs.replace(advice, code="DS003", file=MODEL, line=4)]
    assert run_verdict(profile).line == 4


def test_a_device_that_nearly_always_works_has_nothing_cheap_to_gain_unless_a_finding_says_so() -> None:
    profile = run({"kernel": 196, "CPU": 4}, lines=[WORKING])
    words = "The device is busy for 98.0% of each step, compute-bound at nets/model.py:7"
    assert run_verdict(profile).sentence == f"{words}: nothing cheap to gain was found."
    profile.findings = [training().findings[0]]
    profile.findings[0].saving_ns = 20 * MS
    assert run_verdict(profile).sentence == f"{words}."


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (Why(launch_ns=60 * MS, host_ns=40 * MS), "launching many small kernels"),
        (Why(launch_ns=40 * MS, host_ns=60 * MS), "Python and the CPU's own work between kernels"),
        (Why(waiting_ns=90 * MS), "the CPU waits for the device first"),
    ],
)
def test_an_idle_device_is_explained_by_the_line_that_leaves_it_idle(why: Why, words: str) -> None:
    idle = line(TRAIN, 5, "main", 0, idle_ns=100 * MS, why=why)
    said = run_verdict(run({"kernel": 60, "runtime": 50, "CPU": 60, "other": 30}, lines=[WORKING, idle]))
    assert said.cause == "device idle"
    assert said.sentence == f"The device is idle for 70.0% of each step: {words}, at train.py:5."


def test_communication_that_nothing_hides_is_waiting() -> None:
    sums = line(TRAIN, 4, "main", 120 * MS, why=Why(communication_ns=110 * MS))
    said = run_verdict(run({"kernel": 50, "communication": 120, "CPU": 30}, lines=[sums]))
    assert (said.cause, said.line) == ("communication", 4)
    assert said.sentence == "Waits for communication: 60.0% of each step, at train.py:4."


def test_a_second_cause_is_named_from_a_fifth_on() -> None:
    said = run_verdict(run({"communication": 110, "data loader": 40, "kernel": 50}, lines=[WORKING, LOADING]))
    assert "; it waits for data for 20.0%, at train.py:2" in said.sentence
    assert "data" not in run_verdict(run({"communication": 111, "data loader": 39, "kernel": 50})).sentence


def test_without_lines_it_says_so_and_names_the_module_with_most_of_the_work() -> None:
    profile = run({"kernel": 60, "CPU": 140})
    profile.modules = [profile.modules[0]]
    profile.modules[0].self_device_ns = MS
    said = run_verdict(profile)
    assert (said.file, said.line) == ("", 0)
    name = profile.modules[0].path
    assert said.sentence == (
        "The device is idle for 70.0% of each step; at which line is not known: the trace has no lines; "
        f"the module with most of the work is {name} (100.0%)."
    )


def test_a_line_with_little_of_the_cause_is_not_its_place() -> None:
    few = line(TRAIN, 5, "main", 0, idle_ns=5 * MS)
    said = run_verdict(run({"kernel": 60, "CPU": 140}, lines=[few, WORKING]))
    words = "The device is idle for 70.0% of each step; the line that costs most is nets/model.py:7 (81.8%)."
    assert said.sentence == words


def test_a_busy_machine_is_said() -> None:
    late = line(TRAIN, 3, "main", MS, python_ns=159 * MS, core_wait_ns=100 * MS)
    said = run_verdict(run({"CPU": 60, "other": 140}, lines=[late], metric="cpu_self"))
    assert said.sentence.endswith("; times are rough, for other programs had the cores.")


def test_on_the_cpu_it_is_the_dearest_line_and_what_that_spends_its_time_on() -> None:
    python = line(TRAIN, 3, "main", MS, python_ns=59 * MS)
    operators = line(MODEL, 9, "Net.forward", 20 * MS)
    profile = run({"CPU": 60, "other": 140}, lines=[operators, python], metric="cpu_self")
    profile.no_line.cost_ns = 20 * MS
    said = run_verdict(profile)
    assert (said.cause, said.line) == ("Python", 3)
    assert said.sentence == "Runs on the CPU: 60.0% of the cost is at train.py:3, mostly Python."


@pytest.mark.parametrize(
    ("place", "saving_ms", "words"),
    [
        ((MODEL, 9), 110, "; up to 55.0% could be saved at nets/model.py:9 (DS034)."),
        ((TRAIN, 3), 110, "."),
        ((MODEL, 9), 39, "."),
        (("", 0), 110, "."),
    ],
)
def test_a_finding_that_could_save_much_at_another_line_is_named(
    place: tuple[str, int], saving_ms: int, words: str
) -> None:
    lines = [line(TRAIN, 3, "main", MS, python_ns=59 * MS), line(MODEL, 9, "Net.forward", 20 * MS)]
    profile = run({"CPU": 60, "other": 140}, lines=lines, metric="cpu_self")
    profile.no_line.cost_ns = 20 * MS
    (advice,) = training().findings[:1]
    file, number = place
    advice = structs.replace(advice, code="DS034", file=file, line=number, saving_ns=saving_ms * MS, is_measured=False)
    profile.findings = [advice]
    assert run_verdict(profile).sentence == f"Runs on the CPU: 60.0% of the cost is at train.py:3, mostly Python{words}"
    profile.metric = "device"
    assert "could be saved" not in run_verdict(profile).sentence


def test_a_line_that_recording_slowed_is_named_with_the_word_that_its_cost_is_an_estimate() -> None:
    slowed = line(TRAIN, 3, "main", MS, python_ns=31 * MS, slowed=True)
    others = [line(MODEL, number, "Net.forward", 24 * MS) for number in range(9, 16)]
    said = run_verdict(run({"CPU": 200}, lines=[slowed, *others], metric="cpu_self"))
    assert said.sentence == (
        "Runs on the CPU: 14.9% of the cost is at train.py:3, mostly Python;"
        " an estimate, for recording slowed this line."
    )


@pytest.mark.parametrize(
    ("of_fit", "of_cat", "words"),
    [
        (199, 150, "mostly operators, most of them aten::cat (75.0%)."),
        (199, 50, "mostly operators."),
        (150, 150, "mostly operators."),
    ],
)
def test_of_a_line_with_nearly_all_of_the_cost_the_operator_that_takes_most_is_named(
    of_fit: int, of_cat: int, words: str
) -> None:
    fit, other = line(TRAIN, 3, "main", 2 * of_fit * MS), line(TRAIN, 4, "main", (200 - of_fit) * MS)
    profile = run({"CPU": 200}, lines=[fit, other], metric="cpu_self")
    first, *_ = profile.operators
    profile.operators = [
        structs.replace(first, name=name, self_device_ns=time * MS)
        for name, time in (("aten::cat", of_cat), ("aten::mm", 100 - of_cat // 2), ("aten::add", 100 - of_cat // 2))
    ]
    assert run_verdict(profile).sentence.endswith(f"at train.py:3, {words}")
    profile.trace.stage = "validate"
    assert ("keep what metrics need of it." in run_verdict(profile).sentence) == ("aten::cat" in words)
    profile.trace.recording["settings"] = {"frameworks": ["transformers.Trainer"]}
    assert ("`preprocess_logits_for_metrics=…`" in run_verdict(profile).sentence) == ("aten::cat" in words)


def test_nothing_is_concluded_from_lines_that_recording_slowed() -> None:
    slowed = line(TRAIN, 3, "main", 0, python_ns=150 * MS, slowed=True)
    said = run_verdict(run({"CPU": 200}, lines=[slowed], metric="cpu_self"))
    assert said.cause == "unknown"
    assert said.sentence.startswith("Cannot tell")


def plain_steps(mean_ms: int) -> dict[str, Any]:
    return {"plain_steps": {"steps": 5, "wall": {"mean_ns": mean_ms * MS}}}


@pytest.mark.parametrize(("plain_ms", "is_estimate"), [(100, True), (85, True), (75, False)])
def test_steps_about_as_long_as_plain_ones_make_slowed_lines_an_estimate(plain_ms: int, *, is_estimate: bool) -> None:
    slowed = line(TRAIN, 3, "main", 0, python_ns=150 * MS, slowed=True)
    profile = run({"CPU": 200}, lines=[slowed], metric="cpu_self")  # two steps
    profile.trace.recording = plain_steps(plain_ms)
    said = run_verdict(profile)
    assert (said.cause != "unknown") == is_estimate
    assert said.sentence.endswith("an estimate, for recording slowed this line.") == is_estimate


def test_where_plain_steps_bound_the_whole_slowed_lines_of_loading_make_it_an_estimate() -> None:
    slowed = line(TRAIN, 3, "Rows.__getitem__", 0, python_ns=120 * MS, slowed=True)
    profile = run({"data loader": 180, "CPU": 20}, lines=[slowed], metric="cpu_self")
    profile.totals.added_ns = 400 * MS
    profile.findings = [structs.replace(training().findings[0], code="DS003", file=TRAIN, line=3)]
    assert run_verdict(profile).cause == "unknown"
    profile.trace.recording = plain_steps(10)
    assert run_verdict(profile).sentence == (
        "Waits for data: 90.0% of each step, from train.py:3; an estimate, for recording slowed this line."
    )


def test_memory_that_ran_out_comes_first() -> None:
    profile = profile_of(next(Path(__file__).parents[2].glob("data/traces/threads-out-of-memory.json.gz")))
    said = run_verdict(profile)
    assert (said.cause, said.share) == ("out of memory", None)
    assert said.sentence == f"Memory ran out on cpu; the line that holds most is {Path(said.file).name}:{said.line}."
    assert profile.memory.failure is not None
    assert (said.file, said.line) == (profile.memory.failure.lines[0].file, profile.memory.failure.lines[0].line)


@pytest.mark.parametrize("path", each_trace())
def test_each_trace_has_a_verdict_that_its_times_bear(path: Path) -> None:
    profile = profile_of(path)
    said = run_verdict(profile)
    assert said.sentence.endswith(".")
    assert said.sentence.isprintable()
    assert said.share is None or 0 <= said.share <= 1
    if said.file:
        assert any((one.file, one.line) == (said.file, said.line) for one in profile.lines) or profile.memory.failure
    run = key_figures(profile)
    if said.cause in {"device busy", "device idle"}:
        assert said.share == (run.busy_share if said.cause == "device busy" else run.idle_share)
    if said.cause == "data":
        assert run.idle_share is None or said.share <= run.idle_share + 0.02


def whole(**times_ms: int) -> WholeRun:
    """A run whose parts took these milliseconds, each of them twice."""
    parts = [RunPart(name=name, time_ns=time * MS, times=2) for name, time in times_ms.items()]
    return WholeRun(duration_ns=sum(times_ms.values()) * MS, parts=parts)


def test_what_takes_more_of_the_run_than_the_steps_cause_is_named_before_it() -> None:
    profile = run({"kernel": 100, "data loader": 80, "CPU": 20}, lines=[WORKING, LOADING])
    steps = run_verdict(profile)
    profile.whole_run = whole(steps=200, data=100, evaluation=650, start=50, recording=7000)
    said = run_verdict(profile)
    assert (said.cause, said.share, said.file, said.line) == ("evaluation", 0.65, "", 0)
    assert said.sentence == f"Validation takes 65.0% of the run: 2 times, 325ms each. {steps.sentence}"


def test_what_takes_less_of_the_run_than_the_steps_cause_is_named_behind_it() -> None:
    profile = run({"kernel": 20, "data loader": 160, "CPU": 20}, lines=[WORKING, LOADING])
    steps = run_verdict(profile)
    profile.whole_run = whole(steps=250, data=500, checkpoint=250)
    said = run_verdict(profile)
    assert (said.cause, said.share, said.line) == ("data", steps.share, steps.line)
    assert said.sentence == f"{steps.sentence} Saving checkpoints takes 25.0% of the run: 2 times, 125ms each."


def test_the_verdict_of_an_evaluation_stands_below_a_training_of_which_evaluations_take_much() -> None:
    evaluation = run({"kernel": 150, "CPU": 50}, lines=[WORKING])
    profile = run({"kernel": 100, "data loader": 80, "CPU": 20}, lines=[WORKING, LOADING])
    said = run_verdict(evaluation).sentence
    for of_run, text in ((None, ""), (whole(steps=900, evaluation=100), ""), (whole(steps=700, evaluation=300), said)):
        profile.whole_run = of_run
        evaluation.whole_run = of_run
        assert evaluation_text(evaluation, profile, width=500) == (f"validate  {text}\n" if text else "")
    assert "model.py:7" in said


@pytest.mark.parametrize("run_of", [None, whole(steps=960, logging=40), whole(steps=850, evaluation=150)])
def test_a_run_without_an_account_or_with_little_beside_its_steps_is_told_by_its_steps(run_of: WholeRun | None) -> None:
    profile = run({"kernel": 100, "data loader": 80, "CPU": 20}, lines=[WORKING, LOADING])
    steps = run_verdict(profile)
    profile.whole_run = run_of
    assert run_verdict(profile) == steps


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (
            "checkpoint",
            "Saving checkpoints takes 7.5% of the run after its start: 48 times, 625µs each; save less often.",
        ),
        (
            "logging",
            (
                "Logging takes 7.5% of the run after its start: 48 times, 625µs each; log less often (Lightning: "
                "`Trainer(log_every_n_steps=…)`)."
            ),
        ),
    ],
)
def test_checkpoints_and_logs_count_from_a_twentieth_of_the_time_after_the_start(part: str, words: str) -> None:
    profile = run({"CPU": 200}, lines=[WORKING], metric="cpu_self")
    steps = run_verdict(profile).sentence
    parts = {"steps": 370, part: 30, "start": 600}
    profile.whole_run = structs.replace(
        whole(), parts=[RunPart(name=name, time_ns=time * MS, times=48) for name, time in parts.items()]
    )
    profile.whole_run.duration_ns = 1000 * MS
    assert run_verdict(profile).sentence == f"{steps} {words}"


def test_compiling_that_takes_much_of_the_run_is_named_with_its_function_and_why_it_came_again() -> None:
    run_of = whole(steps=900, rest=100)
    run_of.compiled = [
        CompiledFunction(file="/job/net.py", line=6, function="forward", times=9, time_ns=400 * MS, reason="k == 1.0"),
        CompiledFunction(
            file="/job/net.py", line=6, function="torch_dynamo_resume_in_forward_at_8", times=1, time_ns=100 * MS
        ),
    ]
    profile = run({"CPU": 100}, whole_run=run_of)
    said = run_verdict(profile)
    assert (said.cause, said.share) == ("compiling", 0.5)
    assert said.sentence.startswith(
        "Compiling takes 50.0% of the run, most of it at /job/net.py:6 forward: 9 times, the last time since k == 1.0. "
    )
    assert [row.name for row in run_rows(profile) if row.section == "compiled"] == [
        "/job/net.py:6 forward",
        "/job/net.py:6 forward behind line 8",
    ]


def epochs(*each_ms: float) -> list[RunEpoch]:
    return [
        RunEpoch(number=number, epochs=1, steps=10, steps_ns=int(8 * each * MS), data_ns=int(2 * each * MS))
        for number, each in enumerate(each_ms)
    ]


@pytest.mark.parametrize(
    ("each_ms", "words"),
    [
        (
            (90, 20, 22, 21.5, 24, 27),
            " Steps get slower: 20ms in epoch 1, 27ms in epoch 5; record some of the last ones (`wait=50`).",
        ),
        ((90, 20, 21, 22, 23), ""),  # by less than a fifth
        ((90, 20, 30, 20, 30, 20, 30), ""),  # to and fro
        ((10, 20, 30, 40), ""),  # the first has what is made once, three are too few
    ],
)
def test_steps_that_get_slower_from_epoch_to_epoch_are_said(each_ms: tuple[float, ...], words: str) -> None:
    profile = run({"kernel": 150, "CPU": 50}, lines=[WORKING])
    profile.whole_run = None
    plain = run_verdict(profile).sentence
    profile.whole_run = structs.replace(whole(steps=900, data=100), epochs=epochs(*each_ms))
    assert run_verdict(profile).sentence == plain + words


def test_steps_are_not_said_to_get_slower_by_what_other_programs_explain() -> None:
    profile = run({"kernel": 150, "CPU": 50}, lines=[WORKING])
    profile.trace.recording["machine"] = {"core_wait_ratio": 0.3, "cores": 2, "others_cores": 1.0}
    plain = run_verdict(profile).sentence
    profile.whole_run = structs.replace(whole(steps=900, data=100), epochs=epochs(90, 20, 22, 21.5, 24, 27))
    assert run_verdict(profile).sentence == plain  # 1.35 times as long, where 1.43 times are explained
    profile.trace.recording["machine"]["core_wait_ratio"] = 0.2
    assert "Steps get slower" in run_verdict(profile).sentence


LONG = (
    "1 step of 8 takes 40ms, others 5ms; what makes it longer is 43.8% of the run, and none was recorded: "
    "record 16 (`active=16`). "
)


@pytest.mark.parametrize(
    ("long_steps", "each_ms", "recorded_ms", "words"),
    [
        (20, 40, 10, LONG),
        (20, 40, 25, ""),  # one of them was recorded
        (3, 40, 10, ""),  # those that were looked at, maybe
        (20, 10, 2, ""),  # little of the run
    ],
)
def test_long_steps_that_none_of_the_recorded_ones_is_are_said(
    long_steps: int, each_ms: int, recorded_ms: int, words: str
) -> None:
    profile = run({"CPU": 200}, lines=[WORKING], metric="cpu_self")
    profile.steps = [structs.replace(profile.steps[0], duration_ns=recorded_ms * MS)]
    profile.whole_run = None
    plain = run_verdict(profile).sentence
    profile.whole_run = structs.replace(
        whole(steps=1500, start=100),
        parts=[RunPart(name="steps", time_ns=1500 * MS, times=160), RunPart(name="start", time_ns=100 * MS, times=0)],
        usual_step_ns=5 * MS,
        long_steps=long_steps,
        long_steps_ns=long_steps * each_ms * MS,
    )
    assert run_verdict(profile).sentence == words + plain
    profile.trace.recording["machine"] = {"core_wait_ratio": 0.25, "cores": 2, "others_cores": 1.0}
    assert "1 step of 8" not in run_verdict(profile).sentence


@pytest.mark.parametrize(
    ("share", "words"), [(0.17, "17.0% of the run is evaluation on the training data"), (0.04, "")]
)
@pytest.mark.parametrize("evaluation", [100, 600])
def test_evaluations_on_the_training_data_are_said(share: float, words: str, evaluation: int) -> None:
    profile = run({"CPU": 200}, lines=[WORKING], metric="cpu_self")
    profile.whole_run = whole(steps=1000 - evaluation, evaluation=evaluation)
    before = run_verdict(profile).sentence
    profile.whole_run.repeated_data_ns = int(profile.whole_run.duration_ns * share)
    after = run_verdict(profile).sentence
    assert words in after
    assert (after == before) == (not words)


def pause(part: str, time_ms: int, times: int, function: str = "consolidate") -> RunPause:
    return RunPause(part=part, file=TRAIN, line=62, function=function, time_ns=time_ms * MS, times=times)


@pytest.mark.parametrize(
    ("function", "time_ms", "times", "words"),
    [
        ("consolidate", 100, 4, ", most of it at train.py:62, in consolidate; do it less often, or once."),
        ("<module>", 100, 1, ", most of it at train.py:62."),
        ("consolidate", 50, 4, ""),  # less than half of what it is part of, and little
    ],
)
def test_what_lies_outside_the_steps_has_its_line(function: str, time_ms: int, times: int, words: str) -> None:
    profile = run({"CPU": 200}, lines=[WORKING], metric="cpu_self")
    profile.whole_run = whole(steps=880, rest=120)
    profile.whole_run.pauses = [pause("rest", time_ms, times, function)]
    said = run_verdict(profile).sentence
    assert words in said
    assert ("outside its steps" in said) == bool(words)


def test_a_verdict_on_what_lies_outside_the_steps_stands_at_its_line() -> None:
    profile = run({"CPU": 200}, lines=[WORKING], metric="cpu_self")
    profile.whole_run = whole(steps=400, rest=600)
    profile.whole_run.pauses = [pause("rest", 500, 4)]
    said = run_verdict(profile)
    assert (said.cause, said.file, said.line) == ("outside steps", TRAIN, 62)


@pytest.mark.parametrize(("times", "time_ms", "is_said"), [(4, 150, True), (500, 150, False), (4, 30, False)])
def test_the_wait_for_the_first_batch_of_an_epoch_is_said(times: int, time_ms: int, *, is_said: bool) -> None:
    profile = run({"CPU": 200}, lines=[WORKING], metric="cpu_self")
    parts = [RunPart(name="steps", time_ns=800 * MS, times=160), RunPart(name="data", time_ns=200 * MS, times=160)]
    profile.whole_run = structs.replace(whole(steps=1000), parts=parts, pauses=[pause("data", time_ms, times, "read")])
    said = run_verdict(profile).sentence
    assert ("4 batches wait 37.5ms each at train.py:62, in read: 15.0% of the run" in said) == is_said
    assert ("wait" in said) == is_said


def test_a_run_that_ended_before_its_first_step_has_nothing_beside_its_steps() -> None:
    profile = run({"kernel": 196, "CPU": 4}, lines=[WORKING])
    steps = run_verdict(profile)
    profile.whole_run = whole(start=100)
    assert run_verdict(profile) == steps
