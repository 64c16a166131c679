import pytest

from deepscope.lightning.actions import Loop, LoopMark, annotation_name, classify


@pytest.mark.parametrize(
    ("name", "mark", "loop"),
    [
        ("[_TrainingEpochLoop].train_dataloader_next", LoopMark.BATCH_START, Loop.TRAIN),
        ("[LightningModule]Net.on_train_batch_end", LoopMark.BATCH_END, Loop.TRAIN),
        ("run_training_epoch", LoopMark.EPOCH_END, Loop.TRAIN),
        ("[Callback]EarlyStopping{'monitor': 'val_loss', 'mode': 'min'}.on_train_end", LoopMark.LOOP_END, Loop.TRAIN),
        ("[LightningModule]Net.on_validation_model_eval", LoopMark.ENTER, Loop.VALIDATE),
        ("[_EvaluationLoop].val_next", LoopMark.BATCH_START, Loop.VALIDATE),
        ("[_EvaluationLoop].test_next", LoopMark.BATCH_START, Loop.TEST),
        ("[_PredictionLoop].predict_next", LoopMark.BATCH_START, Loop.PREDICT),
        ("[Callback]Bar.on_exception", LoopMark.EXCEPTION, None),
        ("run_training_batch", LoopMark.NONE, None),
        ("my own action", LoopMark.NONE, None),
    ],
)
def test_an_action_says_where_its_loop_stands(name: str, mark: LoopMark, loop: Loop | None) -> None:
    assert (classify(name).mark, classify(name).loop) == (mark, loop)


def test_a_batch_ends_with_the_modules_own_hook_which_comes_after_the_callbacks() -> None:
    assert classify("[Callback]Bar.on_train_batch_end").mark is LoopMark.NONE


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("[_TrainingEpochLoop].train_dataloader_next", "data"),
        ("[Strategy]DDPStrategy.batch_to_device", "data"),
        ("[Strategy]SingleDeviceStrategy.training_step", "forward"),
        ("[Strategy]SingleDeviceStrategy.backward", "backward"),
        ("[LightningModule]Net.optimizer_step", "optimizer"),
        ("[LightningModule]Net.configure_gradient_clipping", "optimizer"),
        ("[Callback]Bar.on_train_batch_end", "other"),
        ("[LightningModule]Net.on_after_backward", None),
    ],
)
def test_an_action_has_the_phase_of_its_hook(name: str, phase: str | None) -> None:
    assert classify(name).phase == phase


def test_an_action_that_encloses_all_steps_is_not_annotated() -> None:
    assert classify("run_training_epoch").annotation is None


def test_annotations_are_named_as_pytorch_profiler_names_them() -> None:
    assert annotation_name("run_training_batch") == "[pl][profile]run_training_batch"


def test_an_annotation_holds_nothing_that_breaks_the_trace() -> None:
    name = annotation_name('[Callback]Größe{"path": "a\\b"}.on_train_end')
    assert name.isascii()
    assert not set('"\\') & set(name)
