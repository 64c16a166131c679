"""DS019, logging in every step."""

from __future__ import annotations

import pytest

from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def logging(text: str, *, every: int = 1, operators: int = 0, versions: dict[str, str] | None = None) -> TraceBuilder:
    """Ten steps of 1,000 µs; line 5, with that text, runs for 300 µs in each `every`-th."""
    builder = TraceBuilder(deepscope={"versions": versions or {}})
    for number in range(10):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 6, "main", at + 400 * US, 500 * US)
        builder.op("aten::mm", at + 410 * US, 480 * US)
        if number % every == 0:
            builder.line(FILE, 5, "main", at, 300 * US)
            for row in range(operators):
                builder.op("aten::abs", at + (5 + row) * US, US // 2)
    builder.files[0]["text"] = "\n" * 4 + text + "\ny = x @ x\n"
    return builder


@pytest.mark.parametrize(
    "text",
    [
        "print(loss)",
        "logger.info('%s', loss)",
        "logging.info(f'{loss}')",
        "self.log('loss', loss, sync_dist=True)",
        "self.logger.log_metrics({'loss': loss})",
        "wandb.log({'loss': loss})",
        "writer.add_histogram('weight', weight)",
        "bar.set_postfix(loss=loss.item())",
        "if verbose: print(weight)",
        "tqdm.write(str(loss))",
    ],
)
def test_what_logs_in_each_step_is_found_with_its_time(findings_of, text):
    (found,) = findings_of(logging(text), "DS019")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {"logging_ns": 3000 * US, "runs": 10, "runs_per_step": 1.0}
    assert found.saving_ns == 2970 * US
    assert findings_of(logging(text), "DS013") == []


@pytest.mark.parametrize(
    "text",
    [
        "y = torch.log(x)",
        "y = math.log(x)",
        "y = x.log()",
        "s = 'print(x)'",
        "fingerprint(x)  # print(x)",
        "blog.login()",
    ],
)
def test_logarithms_and_words_are_no_logging(findings_of, text):
    assert findings_of(logging(text), "DS019") == []


def test_what_is_done_seldom_is_not_found(findings_of):
    assert findings_of(logging("print(loss)", every=5), "DS019") == []


def test_a_call_on_several_lines_is_one(findings_of):
    assert findings_of(logging("loss)  # a continued line"), "DS019") == []
    builder = logging("    loss)")
    builder.files[0]["text"] = "\n\n\nprint(\n    loss)\ny = x @ x\n"
    (found,) = findings_of(builder, "DS019")
    assert found.line == 5


def test_lightning_has_an_option_of_its_own_that_saves_a_part(findings_of):
    (found,) = findings_of(logging("self.log('loss', loss)"), "DS019")
    assert "on_epoch=True" in found.remedy.text
    assert not found.is_measured
    assert findings_of(logging("self.log('loss', loss, on_step=False, on_epoch=True)"), "DS019") == []


def test_a_metric_that_is_computed_in_each_step_is_to_be_given_to_lightning(findings_of):
    (found,) = findings_of(logging("self.log('auroc', self.auroc.compute())"), "DS019")
    assert "the metric itself" in found.remedy.text
    assert found.is_measured


def test_the_many_operators_of_a_printed_tensor_are_promised_once(findings_of):
    builder = logging("for one in x: print(one)", operators=250)
    assert findings_of(builder, "DS007") == []
    assert len(findings_of(builder, "DS019")) == 1


def test_with_a_device_other_rules_say_so(findings_of):
    assert findings_of(logging("print(loss)").kernel("gemm", 10 * US, 50 * US, 900 * US), "DS019") == []


def in_lightning(*, monitor_us: int = 60, logger_us: int = 60, every: int = 1, text: str = "") -> TraceBuilder:
    """Ten steps of 1,000 µs in `trainer.fit(…)`, line 9, with a callback and a logger."""
    action = "[pl][profile]"
    builder = TraceBuilder().line(FILE, 9, "main", 0, 10_000 * US)
    for number in range(10):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US)
        builder.annotation(f"{action}run_training_batch", at + 100 * US, 600 * US).op(
            "aten::mm", at + 101 * US, 590 * US
        )
        if number % every == 0:
            builder.annotation(
                f"{action}[Callback]DeviceStatsMonitor.on_train_batch_end", at + 710 * US, monitor_us * US
            )
            builder.annotation(f"{action}[Logger]log_metrics", at + 810 * US, logger_us * US)
    builder.files[0]["text"] = (
        text or "import lightning as L\n\n\ntrainer = L.Trainer(\n    max_epochs=3)\ntrainer.fit(model)\n"
    )
    return builder


def test_monitors_and_loggers_of_a_trainer_that_work_in_each_step_are_found_where_it_is_made(findings_of):
    found = findings_of(in_lightning(), "DS019")
    assert [(one.line, one.evidence["part"], one.is_measured) for one in found] == [
        (4, "callback DeviceStatsMonitor", False),
        (4, "logging", False),
    ]
    assert found[0].evidence["monitor_ns"] == 600 * US
    assert "Take DeviceStatsMonitor out" in found[0].remedy.text
    assert "log_every_n_steps" in found[1].remedy.text
    (first, _) = findings_of(in_lightning(text="Trainer()\n\nTrainer()\n"), "DS019")
    assert (first.file, first.line) == ("", 0)


@pytest.mark.parametrize("builder", [in_lightning(every=5), in_lightning(monitor_us=20, logger_us=20)])
def test_monitors_and_loggers_that_seldom_work_or_do_little_are_not_found(findings_of, builder):
    assert findings_of(builder, "DS019") == []


def called(package: str, *, every: int = 1, us: int = 300) -> TraceBuilder:
    """Ten steps of 1,000 µs; line 5 calls a module of a package for so long in each `every`-th."""
    builder = TraceBuilder()
    for number in range(10):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).op("aten::mm", at + 510 * US, 480 * US)
        if number % every == 0:
            builder.line(FILE, 5, "main", at, 500 * US)
            builder.module("MulticlassAUROC", "auroc", at + 1 * US, us * US, python_module=package)
            builder.op("aten::sort", at + 2 * US, (us - 2) * US)
    builder.files[0]["text"] = "\n" * 4 + "self.auroc(scores, labels)\n"
    return builder


def test_a_metric_that_is_called_in_each_step_computes_what_an_update_does_not(findings_of):
    (found,) = findings_of(called("torchmetrics.classification.auroc"), "DS019")
    assert found.line == 5
    assert found.evidence == {"metric_ns": 3000 * US, "runs": 10, "runs_per_step": 1.0}
    assert (found.saving_ns, found.is_measured) == (1500 * US, False)
    assert ".update(…)" in found.remedy.text


@pytest.mark.parametrize(
    "builder",
    [
        called("torch.nn.modules.linear"),
        called("torchmetrics.classification", every=5),
        called("torchmetrics.classification", us=80),
    ],
)
def test_other_modules_and_metrics_that_cost_little_are_not_found(findings_of, builder):
    assert findings_of(builder, "DS019") == []
