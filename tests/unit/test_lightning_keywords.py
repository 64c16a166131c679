import pytest
import torch

from deepscope.errors import OptionError
from deepscope.lightning.keywords import choose


def test_the_defaults_are_those_of_a_recording() -> None:
    options = choose(None, None, {}).recording
    assert (options.wait, options.warmup, options.active, options.repeat, options.skip_first) == (1, 1, 3, 1, 0)
    assert options.lines


def test_what_pytorch_profiler_calls_differently_is_understood() -> None:
    chosen = choose("a", "b", {"group_by_input_shapes": True, "record_module_names": False, "row_limit": -1})
    assert chosen.recording.record_shapes
    assert not chosen.recording.modules
    assert chosen.rows == 0
    assert (chosen.dirpath, chosen.filename) == ("a", "b")


def test_a_template_names_traces_and_leaves_the_summary_on_the_terminal() -> None:
    plain, template = choose(None, "run7", {}), choose(None, "{program}-{rank}", {})
    assert (plain.name, plain.filename) == ("run7", "run7")
    assert (template.name, template.filename) == ("{program}-{rank}", None)
    with pytest.raises(OptionError, match=r"filename='\{x\}': must be letters and fields"):
        choose(None, "{x}", {})


@pytest.mark.parametrize(
    ("key", "sort"),
    [("cuda_time_total", "total"), ("self_cpu_time_total", "cpu"), ("count", "calls"), ("wait", "wait"), (None, None)],
)
def test_sort_keys_of_torch_and_of_the_report_are_taken(key: str | None, sort: str | None) -> None:
    assert choose(None, None, {"sort_by_key": key}).sort == sort


def test_a_handler_for_tensorboard_gives_the_folder(tmp_path) -> None:
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path), worker_name="worker0")
    chosen = choose(None, None, {"on_trace_ready": handler})
    assert (chosen.dirpath, chosen.filename) == (str(tmp_path), "worker0")
    assert chosen.recording.on_trace_ready is None


def test_a_folder_given_goes_before_that_of_a_handler(tmp_path) -> None:
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path))
    assert choose("mine", None, {"on_trace_ready": handler}).dirpath == "mine"


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"emit_nvtx": True}, "emit_nvtx=True"),
        ({"activ": 3}, "activ=3: no such option"),
        ({"row_limit": 0.5}, "row_limit=0.5"),
        ({"sort_by_key": "speed"}, "sort_by_key='speed'"),
        ({"active": 0}, "active=0"),
    ],
)
def test_what_cannot_be_used_is_named(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        choose(None, None, keywords)


def test_a_url_cannot_be_recorded_to() -> None:
    with pytest.raises(OptionError, match="s3://bucket"):
        choose("s3://bucket/traces", None, {})


@pytest.mark.parametrize("keywords", [{"export_to_chrome": False}, {"table_kwargs": {}}, {"use_cuda": True}])
def test_what_has_no_effect_says_so(keywords: dict[str, object]) -> None:
    with pytest.warns(UserWarning, match=f"{next(iter(keywords))}=.* has no effect"):
        choose(None, None, keywords)


def test_asking_for_a_chrome_trace_is_asking_for_what_is_done_anyway() -> None:
    choose(None, None, {"export_to_chrome": True})
