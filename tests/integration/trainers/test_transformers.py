"""Hugging Face's Trainer on a BERT of two small layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

import deepscope
from deepscope.errors import OptionError
from trainer_runs import TESTS, are_same, is_complete, line_of, need, run_recorded, state_of, steps_of, times_of

need("transformers", "transformers")
need("accelerate", "accelerate")

from transformers import AutoModelForSequenceClassification, BertConfig, Trainer, TrainingArguments  # noqa: E402

from deepscope.trainers.transformers import DeepScopeCallback  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(transformers|accelerate|huggingface_hub)"),
    pytest.mark.filterwarnings("ignore::FutureWarning:(transformers|accelerate|huggingface_hub)"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
]
FORWARD = "outputs = model(**inputs)"
VALIDATION_ITEM = "return item(number, label=1)"


def item(number: int, label: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.arange(8) * (number + 3) % 32, "labels": torch.tensor(label)}


class Items(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        return item(number, label=number % 2)


class ValidationItems(Items):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        return item(number, label=1)


class FewClasses(Trainer):
    """As users write it: the forward line is theirs."""

    fails_at: int | None = None
    error: BaseException = RuntimeError("mine")

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        if self.state.global_step == self.fails_at and model.training:
            raise self.error
        outputs = model(**inputs)
        return (outputs.loss, outputs) if return_outputs else outputs.loss


def model() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return AutoModelForSequenceClassification.from_config(BertConfig(vocab_size=32, **sizes))


def trainer(callback: DeepScopeCallback | None = None, **options: Any) -> FewClasses:
    chosen = {
        "output_dir": "out",
        "max_steps": 8,
        "per_device_train_batch_size": 2,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return FewClasses(
        model(),
        TrainingArguments(**(chosen | options)),
        train_dataset=Items(),
        eval_dataset=ValidationItems(),
        callbacks=[callback] if callback is not None else [],
    )


def callback(**options: Any) -> DeepScopeCallback:
    return DeepScopeCallback(**({"root": TESTS} | options))


def test_a_step_is_one_of_the_optimizer_with_all_its_batches() -> None:
    recorded = callback(active=2)
    trainer(recorded, gradient_accumulation_steps=2).train()
    assert steps_of(recorded.profile) == [2, 3]
    forward = line_of(recorded.profile, FORWARD)
    assert (forward.calls, Path(forward.file).name) == (4, "test_transformers.py")
    assert forward.backward_device_ns > 0
    assert times_of(recorded.profile) == {"steps": 8, "data": 8}
    assert [path.parent for path in recorded.traces] == [Path("out/deepscope_logs").resolve()]
    assert is_complete(recorded.traces[-1])


def test_training_comes_to_the_same_with_and_without_a_recording() -> None:
    states = []
    for recorded in (None, callback(active=3, record_shapes=True)):
        job = trainer(recorded, gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=3)
        job.train()
        states.append(state_of(job.model))
    assert are_same(states)


def test_an_evaluation_and_a_checkpoint_are_part_of_no_step_and_end_the_window_before_them() -> None:
    recorded = callback(active=4)
    job = trainer(
        recorded,
        eval_strategy="steps",
        eval_steps=4,
        save_strategy="steps",
        save_steps=4,
        logging_strategy="steps",
        logging_steps=2,
    )
    job.train()
    assert steps_of(recorded.profile) == [2, 3]
    assert line_of(recorded.profile, FORWARD).calls == 2
    assert recorded.profile is not None
    assert VALIDATION_ITEM not in [line.text.strip() for line in recorded.profile.lines]
    assert times_of(recorded.profile) == {"steps": 8, "data": 8, "evaluation": 2, "checkpoint": 2, "logging": 4}


def test_a_window_that_an_evaluation_would_open_with_opens_behind_it() -> None:
    recorded = callback(active=2)
    trainer(recorded, max_steps=6, eval_strategy="steps", eval_steps=2).train()
    assert steps_of(recorded.profile) == [2, 3]
    assert recorded.profile is not None
    assert VALIDATION_ITEM not in [line.text.strip() for line in recorded.profile.lines]


def test_several_evaluations_behind_an_epoch_are_part_of_no_step() -> None:
    recorded = callback(active=8)
    job = trainer(recorded, max_steps=-1, num_train_epochs=2, per_device_train_batch_size=16, eval_strategy="epoch")
    job.eval_dataset = {"one": ValidationItems(), "two": ValidationItems()}
    job.train()
    assert steps_of(recorded.profile) == [2, 3]
    assert times_of(recorded.profile) == {"steps": 8, "data": 8, "evaluation": 4}


def test_an_evaluation_that_takes_long_has_a_window_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ValidationItems, "__len__", lambda _: 400)
    recorded = callback(wait=0, active=1)
    trainer(recorded, max_steps=8, eval_strategy="steps", eval_steps=4, per_device_eval_batch_size=2).train()
    main, evaluation = (deepscope.load_profile(path, cache=False) for path in recorded.traces)
    assert (main.trace.stage, evaluation.trace.stage) == ("", "validate")
    assert VALIDATION_ITEM in [line.text.strip() for line in evaluation.lines]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_of_few_steps_is_recorded(steps: int) -> None:
    recorded = callback()
    trainer(recorded, max_steps=steps).train()
    assert steps_of(recorded.profile) == [steps - 1]


def test_a_run_that_is_resumed_is_recorded_from_there_on() -> None:
    trainer(save_strategy="steps", save_steps=6).train()
    recorded = callback()
    trainer(recorded).train(resume_from_checkpoint="out/checkpoint-6")
    assert steps_of(recorded.profile) == [1]
    assert times_of(recorded.profile)["steps"] == 2


@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt()])
def test_an_exception_saves_what_was_recorded_and_goes_on(error: BaseException) -> None:
    job = trainer(recorded := callback(active=5))
    job.fails_at, job.error = 4, error
    with pytest.raises(type(error)), recorded:
        job.train()
    assert not is_complete(recorded.traces[-1])
    assert steps_of(recorded.profile)[:2] == [2, 3]


def test_what_an_exception_left_open_is_saved_as_the_next_training_begins() -> None:
    job = trainer(recorded := callback(active=5))
    job.fails_at = 4
    with pytest.raises(RuntimeError):
        job.train()
    left = recorded._recording
    job.fails_at = None
    job.train()
    assert left is not None
    assert not is_complete(left.traces[-1])
    assert is_complete(recorded.traces[-1])


def test_each_training_of_one_callback_is_a_run_of_its_own() -> None:
    recorded = callback()
    traces = []
    for _ in range(2):
        trainer(recorded).train()
        assert steps_of(recorded.profile) == [2, 3, 4]
        traces += recorded.traces
    assert len(set(traces)) == 2


def test_an_evaluation_without_training_is_not_recorded() -> None:
    recorded = callback()
    trainer(recorded).evaluate()
    assert recorded.traces == []


def test_an_option_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(OptionError):
        DeepScopeCallback(actve=3)  # type: ignore[call-arg]


PROGRAM = """\
import torch
from transformers import AutoModelForSequenceClassification, BertConfig, Trainer, TrainingArguments
{imported}
config = BertConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
model = AutoModelForSequenceClassification.from_config(config)
items = [{{"input_ids": torch.arange(8), "labels": torch.tensor(1)}} for _ in range(32)]
arguments = TrainingArguments(
    "out", max_steps=6, per_device_train_batch_size=2, gradient_accumulation_steps=2, eval_strategy="steps",
    eval_steps=2, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="steps", save_steps=3,
)
Trainer(model, arguments, train_dataset=items, eval_dataset=items[:8], callbacks=[{callback}]).train()
"""


@pytest.mark.thorough
def test_a_program_is_recorded_without_a_change(tmp_path: Path) -> None:
    [trace] = run_recorded(tmp_path, PROGRAM.format(imported="", callback=""))
    profile = deepscope.load_profile(trace, cache=False)
    assert steps_of(profile) == [2, 3]  # with the evaluation behind the fourth the window ends
    times = times_of(profile)
    assert (times["steps"], times["evaluation"]) == (6, 3)


def test_a_program_with_a_callback_is_left_to_it_so_that_no_step_counts_twice(tmp_path: Path) -> None:
    imported = "from deepscope.trainers.transformers import DeepScopeCallback"
    program = PROGRAM.format(imported=imported, callback="DeepScopeCallback('own', active=2)")
    assert run_recorded(tmp_path, program) == []
    profile = deepscope.load_profile(tmp_path / "own", cache=False)
    assert times_of(profile) == {"steps": 6, "data": 6, "evaluation": 3, "checkpoint": 2}
