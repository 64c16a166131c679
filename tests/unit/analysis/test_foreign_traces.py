"""Traces without line scopes: what frames, call stacks, modules and annotations allow, and nothing called exact."""

from __future__ import annotations

import pytest

from deepscope.analysis.ownership.locations import Owner, owner_of_file, python_module_of_file
from trace_builder import BACKWARD, TraceBuilder


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("train.py", Owner.USER),
        ("/home/me/project/train.py", Owner.USER),
        ("C:\\work\\train.py", Owner.USER),
        ("<ipython-input-3-abcdef>", Owner.USER),
        ("/tmp/ipykernel_77/1234.py", Owner.USER),
        ("/sgl-workspace/sglang/python/sglang/srt/server.py", Owner.USER),
        ("profile.py", Owner.USER),
        ("transformers/models/gpt2/modeling_gpt2.py", Owner.LIBRARY),
        ("/usr/lib/python3.10/site-packages/unheard_of/core.py", Owner.LIBRARY),
        ("/opt/conda/lib/python3.11/dist-packages/vllm/worker.py", Owner.LIBRARY),
        ("torch/nn/modules/module.py", Owner.RUNTIME),
        ("/opt/venv/lib/python3.12/site-packages/torch/_ops.py", Owner.RUNTIME),
        ("/workspace/pytorch/torch/nn/functional.py", Owner.RUNTIME),
        ("threading.py", Owner.RUNTIME),
        ("multiprocessing/connection.py", Owner.RUNTIME),
        ("/usr/lib/python3.10/contextlib.py", Owner.RUNTIME),
        ("/tmp/torchinductor_me/ov/cabc.py", Owner.RUNTIME),
        ("<string>", Owner.RUNTIME),
        ("<frozen importlib._bootstrap>", Owner.RUNTIME),
        ("", Owner.RUNTIME),
    ],
)
def test_whose_code_a_file_is(path, owner):
    assert owner_of_file(path) == owner


@pytest.mark.parametrize(
    ("path", "module"),
    [
        (
            "/v/lib/python3.11/site-packages/transformers/models/gpt2/modeling_gpt2.py",
            "transformers.models.gpt2.modeling_gpt2",
        ),
        ("torch/nn/__init__.py", "torch.nn"),
        ("/usr/lib/python3.10/json/decoder.py", "json.decoder"),
    ],
)
def test_the_python_module_of_an_installed_file(path, module):
    assert python_module_of_file(path) == module


def test_frames_give_the_innermost_user_function_and_are_not_exact(profile_of, at):
    builder = TraceBuilder().frame("train.py(3): main", 0, 1000).frame("model.py(20): forward", 100, 500)
    builder.frame("torch/nn/modules/linear.py(115): forward", 150, 300).frame("<built-in function linear>", 160, 200)
    builder.op("aten::linear", 170, 100).kernel("gemm", 180, 2000, 40)
    profile = profile_of(builder)
    line = at(profile, 20)
    assert (line.function, line.self_device_ns, line.exact, line.calls) == ("forward", 40, False, 1)
    assert at(profile, 3).total_device_ns == 40
    assert (profile.trace.line_source, profile.resolved.function_ns, profile.resolved.line_ns) == ("frames", 40, 0)


def test_where_no_frame_is_the_users_the_innermost_library_function_is_named(profile_of, at):
    builder = TraceBuilder().frame("vllm/worker.py(3): run", 0, 1000).frame("vllm/model.py(20): forward", 100, 500)
    builder.frame("torch/_ops.py(9): __call__", 150, 300).kernel("gemm", 180, 2000, 40)
    assert at(profile_of(builder), 20).self_device_ns == 40


def test_a_library_below_a_user_frame_is_no_line_but_named_under_it(profile_of, at):
    builder = TraceBuilder().frame("train.py(3): main", 0, 1000)
    builder.frame("transformers/models/gpt2/modeling_gpt2.py(50): forward", 100, 500)
    builder.frame("torch/nn/modules/linear.py(115): forward", 150, 300)
    builder.op("aten::addmm", 170, 100).kernel("gemm", 180, 2000, 40)
    profile = profile_of(builder)
    assert [line.line for line in profile.lines] == [3]
    (library,) = at(profile, 3).libraries
    assert (library.module, library.function) == ("transformers.models.gpt2.modeling_gpt2", "forward")
    assert (library.operator, library.device_ns, library.include) == ("aten::addmm", 40, "transformers.models.gpt2.*")


def test_libraries_are_named_by_module_scopes_too_but_only_where_most_of_the_time_lies_below_them(profile_of, at):
    site = "/v/lib/python3.11/site-packages/timm/layers/mlp.py"
    builder = TraceBuilder().line("/home/me/a.py", 10, "main", 0, 1000).line("/home/me/a.py", 11, "main", 1000, 1000)
    for start, below, own in ((0, 60, 40), (1000, 40, 60)):
        builder.module("Mlp", "net.mlp", start + 100, 300, file=site, line=9, python_module="timm.layers.mlp")
        builder.op("aten::mm", start + 150, 100).kernel("k", start + 160, 5000 + start, below)
        builder.kernel("k", start + 600, 6000 + start, own)
    profile = profile_of(builder)
    (library,) = at(profile, 10).libraries
    assert (library.module, library.function, library.include) == ("timm.layers.mlp", "Mlp.forward", "timm.layers.*")
    assert at(profile, 11).libraries == []


def test_within_modules_the_innermost_that_calls_modules_is_named_and_time_is_summed_by_what_would_open_it(
    profile_of, at
):
    folder = "transformers.models.gpt2.modeling"
    parts = [("GPT2MLP", folder, "Conv1D", "transformers.pytorch_utils", 50), ("GPT2Block", folder, "", "", 20)]
    parts.append(("TransformerEncoderLayer", "torch.nn.modules.transformer", "Linear", "torch.nn.modules.linear", 9))
    builder = TraceBuilder().line("/home/me/a.py", 10, "main", 0, 1000)
    builder.module("Sequential", "", 0, 1000, python_module="torch.nn.modules.container")
    for start, (outer, module, inner, leaf, device) in zip((0, 200, 400), parts, strict=True):
        builder.module(outer, "a", start + 1, 150, python_module=module)
        if inner:
            builder.module(inner, "a.b", start + 2, 140, python_module=leaf)
        else:
            builder.module("GPT2Attention", "a.c", start + 2, 140, python_module=folder)
        builder.op("aten::addmm", start + 10, 100).kernel("k", start + 20, 5000 + start, device)
    found = {
        (one.function, one.device_ns, one.include, one.include_ns) for one in at(profile_of(builder), 10).libraries
    }
    assert found == {
        ("GPT2MLP.forward", 50, "transformers.models.gpt2.*", 70),
        ("GPT2Block.forward", 20, "transformers.models.gpt2.*", 70),
        ("TransformerEncoderLayer.forward", 9, "torch.nn.modules.transformer", 9),
    }


def test_a_package_that_stands_outside_the_project_without_being_installed_is_a_library_too(profile_of, at):
    builder = TraceBuilder(deepscope={"project_root": "/home/me/project"})
    builder.line("/home/me/project/a.py", 10, "main", 0, 1000)
    for file, start in (("/home/me/lab/nets.py", 100), ("/home/me/project/own.py", 500)):
        builder.module("Net", "net", start, 300, file=file, line=9, python_module=file.split("/")[3])
        builder.kernel("k", start + 10, 5000 + start, 60 if "lab" in file else 40)
    (library,) = at(profile_of(builder), 10).libraries
    assert (library.module, library.device_ns) == ("lab", 60)


def test_an_optimizer_step_names_the_optimizer(profile_of, at):
    builder = (
        TraceBuilder().line("/home/me/a.py", 10, "main", 0, 1000).annotation("Optimizer.step#AdamW.step", 100, 500)
    )
    builder.op("aten::_foreach_add_", 150, 100).kernel("k", 160, 5000, 60)
    (library,) = at(profile_of(builder), 10).libraries
    assert (library.module, library.function, library.operator) == (
        "torch.optim.adamw",
        "AdamW.step",
        "aten::_foreach_add_",
    )


def test_call_stacks_serve_where_there_are_no_frames(profile_of, at):
    stack = "torch/nn/functional.py(9): linear;model.py(20): forward;train.py(3): main"
    builder = TraceBuilder().op("aten::linear", 100, 500, stack=stack, sequence=1).kernel("gemm", 180, 2000, 40)
    builder.flow(100, 1000).backward("AddmmBackward0", 1000, 500, 1).kernel("back", 1100, 3000, 60, tid=BACKWARD)
    profile = profile_of(builder)
    line = at(profile, 20)
    assert (line.self_device_ns, line.backward_device_ns, line.exact) == (100, 60, False)
    assert at(profile, 3).total_device_ns == 100
    assert profile.trace.line_source == "call_stack"
    assert line.self_cpu_ns == 500


def test_deepscopes_own_call_stacks_are_exact(profile_of, at):
    builder = TraceBuilder(deepscope={"format": 1, "call_stacks": {"operators": 1, "written": 1}})
    builder.op("aten::mm", 100, 500, stack="/p/site-packages/timm/model.py(20): forward;/p/train.py(3): main")
    assert at(profile_of(builder.kernel("gemm", 180, 2000, 40)), 20).exact


def test_call_stacks_that_torch_wrote_are_not_exact_in_a_trace_of_deepscope_without_lines(profile_of, at):
    builder = TraceBuilder(deepscope={"format": 1, "call_stacks": {"operators": 1, "written": 0}})
    builder.op("aten::mm", 100, 500, stack="/p/model.py(20): forward")
    assert not at(profile_of(builder.kernel("gemm", 180, 2000, 40)), 20).exact


def test_work_in_a_module_that_no_frame_owns_is_resolved_to_the_module(profile_of):
    builder = TraceBuilder().frame("nn.Module: Linear_3", 0, 500).op("aten::mm", 100, 100).kernel("gemm", 180, 2000, 40)
    profile = profile_of(builder)
    assert (profile.resolved.module_ns, profile.no_line.self_device_ns) == (40, 40)
    assert [(m.path, m.class_name, m.self_device_ns) for m in profile.modules] == [("Linear_3", "Linear", 40)]


def test_named_regions_stand_for_modules_where_there_are_none(profile_of):
    builder = TraceBuilder().step(0, 0, 5000).annotation("Attention", 0, 500).annotation("nccl:all_reduce", 10, 300)
    builder.op("aten::mm", 100, 100).kernel("gemm", 180, 2000, 40).kernel("other", 600, 3000, 2)
    profile = profile_of(builder)
    assert [(m.path, m.self_device_ns) for m in profile.modules] == [("Attention", 40)]
    assert (profile.resolved.module_ns, profile.resolved.none_ns) == (40, 2)


def test_a_step_on_an_engine_thread_does_not_hide_where_its_work_comes_from(profile_of, at):
    """The oldest recorders wrote `ProfilerStep` on autograd's threads as well, around all that ran there."""
    builder = TraceBuilder().step(0, 0, 5000).step(0, 500, 4000, tid=BACKWARD).frame("train.py(3): main", 0, 4900)
    builder.op("aten::mm", 100, 100, sequence=1, fwd_thread=0).flow(100, 1000)
    builder.backward("MmBackward", 1000, 500, 1).kernel("k", 1100, 6000, 9, tid=BACKWARD)
    builder.op("aten::add", 2000, 100, tid=BACKWARD).kernel("sum", 2010, 7000, 4, tid=BACKWARD)
    assert at(profile_of(builder), 3).self_device_ns == 13
