"""Every recorded trace, against an independent reading with the standard library."""

import functools
import gzip
import json
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest

from deepscope.trace.joins.backward import backward_partners
from deepscope.trace.joins.correlation import launches
from deepscope.trace.kinds import Kind
from deepscope.trace.read import read_trace
from recorded_traces import SHARED_TRACES, each, needs_shared_traces, shared_paths

pytestmark = needs_shared_traces

_KINDS = {
    Kind.ANNOTATION: {"user_annotation"},
    Kind.PYTHON_FUNCTION: {"python_function"},
    Kind.OPERATOR: {"cpu_op", "Operator"},
    Kind.RUNTIME: {"cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime", "enqueue", "dequeue"},
    Kind.KERNEL: {"kernel", "Kernel"},
    Kind.MEMCPY: {"gpu_memcpy", "Memcpy"},
    Kind.MEMSET: {"gpu_memset", "Memset"},
    Kind.DEVICE_SPAN: {"gpu_user_annotation", "cuda_sync", "cuda_profiler_range"},
    Kind.OTHER: {"overhead", "Trace"},
}
_OLD_ANNOTATIONS = ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.")
_OWN_RULES = ("msprof", "mtia")  # no categories, or names that decide: tests of their own


@functools.lru_cache(maxsize=1)
def _by_hand(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document = json.load(file, parse_float=str)
    return document if isinstance(document, list) else document["traceEvents"]


@functools.lru_cache(maxsize=1)
def _read(path):
    return read_trace(path)


def _ns(text):
    if isinstance(text, int):
        return text * 1000
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


def _kind(event):
    category = event.get("cat", "")
    if category in ("cpu_op", "Operator") and event["name"].startswith(_OLD_ANNOTATIONS):
        step_or_loop = (
            not event["name"].startswith("Optimizer.") or "step#" in event["name"] or "zero_grad#" in event["name"]
        )
        return Kind.ANNOTATION if step_or_loop else Kind.OPERATOR
    return next(kind for kind, categories in _KINDS.items() if category in categories)


@pytest.fixture(scope="module", params=each(shared_paths()))
def path(request):
    return request.param


def test_every_complete_event_is_read_with_its_exact_time(path):
    complete = [e for e in _by_hand(path) if e["ph"] == "X"]
    events = _read(path).events
    assert events.start_ns.tolist() == [_ns(e["ts"]) for e in complete]
    assert events.duration_ns.tolist() == [max(_ns(e["dur"]), 0) for e in complete]
    strings = _read(path).strings
    assert [strings[i] for i in events.name.tolist()] == [e["name"] for e in complete]
    assert [strings[i] for i in events.category.tolist()] == [e.get("cat", "") for e in complete]


@pytest.mark.parametrize("path", each([path for path in shared_paths() if not any(o in path.name for o in _OWN_RULES)]))
def test_kinds_follow_the_categories(path):
    complete = [e for e in _by_hand(path) if e["ph"] == "X"]
    assert _read(path).events.kind.tolist() == [_kind(e) for e in complete]


def test_arguments_are_those_of_the_file(path):
    trace = _read(path)
    complete = [e for e in _by_hand(path) if e["ph"] == "X"]
    args = [e.get("args") or {} for e in complete]
    operators = [i for i, kind in enumerate(trace.events.kind.tolist()) if kind == Kind.OPERATOR]
    device = [i for i, kind in enumerate(trace.events.kind.tolist()) if Kind.KERNEL <= kind <= Kind.MEMSET]
    calls = [i for i, kind in enumerate(trace.events.kind.tolist()) if kind == Kind.RUNTIME]

    def column(name, rows):
        return getattr(trace.events, name)[rows].tolist()

    def written(*names, rows):
        return [next((args[i][name] for name in names if name in args[i]), -1) for i in rows]

    assert column("sequence", operators) == written("Sequence number", rows=operators)
    assert column("fwd_thread", operators) == written("Fwd thread id", rows=operators)
    assert column("external_id", operators) == written("External id", "external id", rows=operators)
    if not path.name.startswith("msprof"):
        assert column("correlation", device + calls) == written("correlation", rows=device + calls)
    stacks = [trace.strings[i] if i >= 0 else -1 for i in column("call_stack", operators)]
    assert stacks == [stack or -1 for stack in written("Call stack", rows=operators)]
    shapes = [json.loads(trace.strings[i]) if i >= 0 else -1 for i in column("shapes", operators)]
    assert shapes == written("Input Dims", "Input dims", rows=operators)


def test_threads_memory_and_arrows_are_those_of_the_file(path):
    trace = _read(path)
    by_hand = _by_hand(path)
    if not path.name.startswith("msprof"):
        places = [(trace.threads[i].pid, trace.threads[i].tid) for i in trace.events.thread.tolist()]
        assert places == [(e["pid"], e["tid"]) for e in by_hand if e["ph"] == "X"]
    memory = [e for e in by_hand if e["ph"] == "i" and e["name"] == "[memory]"]
    assert trace.memory.ts_ns.tolist() == [_ns(e["ts"]) for e in memory]
    assert trace.memory.size_bytes.tolist() == [e["args"]["Bytes"] for e in memory]
    assert trace.memory.total_allocated_bytes.tolist() == [e["args"].get("Total Allocated", -1) for e in memory]
    arrows = [e for e in by_hand if e.get("cat") == "fwdbwd"]
    assert trace.flows.ts_ns.tolist() == [_ns(e["ts"]) for e in arrows]
    assert trace.flows.is_start.tolist() == [e["ph"] == "s" for e in arrows]


def _table_of_the_readme():
    text = (SHARED_TRACES / "README.md").read_text(encoding="utf-8") if SHARED_TRACES else ""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}


def test_counts_are_those_of_the_collection(path):
    row = _table_of_the_readme()[path.name.removesuffix(".json.gz")]
    trace = _read(path)
    events = trace.events
    # The collection counts a step's span on the device too.
    is_named = [name.startswith("ProfilerStep#") for name in trace.strings]
    assert (events.kind == Kind.PYTHON_FUNCTION).sum() == int(row["py"])
    operator = events.kind == Kind.OPERATOR
    stacks = (events.call_stack >= 0) & (operator | (events.kind == Kind.ANNOTATION))
    if "distributed_info_not_found" not in path.name:  # its stacks are there, but empty
        assert stacks.sum() == int(row["cs"])
    assert len(trace.memory.ts_ns) == int(row["mem"])
    steps = np.isin(events.kind, [Kind.ANNOTATION, Kind.DEVICE_SPAN]) & np.array(is_named, np.bool_)[events.name]
    assert steps.sum() == int(row["steps"])
    if not path.name.startswith("msprof") and "mtia" not in path.name:
        device = (events.kind >= Kind.KERNEL) & (events.kind <= Kind.MEMSET)
        assert device.sum() == int(row["dev"])


# Roots that have a number, those with a partner, and those whose partner has exactly that number.
_PARTNERS = {
    "holistictraceanalysis-mi250_minitoy_train_rocm6_2_kineto": (4, 4, 4),
    "holistictraceanalysis-nccl_parser_config-nccl_data": (543, 543, 543),
    "holistictraceanalysis-rank-0.apr_03_18_51_38.1102": (905, 905, 905),
    "kineto-resnet50_num_workers_0-worker0.1623143089861": (1068, 1068, 1068),
    "kineto-test-gpu_metrics_input": (11, 11, 11),
    "param-inputs-linear_kineto": (2640, 2640, 2640),
    "tracelens-mi300-resnet_act_checkpoint": (213, 213, 213),
    "tracelens-normalization_layer_test": (51, 51, 51),
    "torch-profile-trace_04": (20, 20, 20),
    "torch-profile-trace_05": (20, 20, 20),
    **{f"param-worker{n}": (38, 38, 38) for n in range(8)},
    "torchrec": (144, 144, 114),
}


def test_partners_of_backward_work_are_earlier_forward_operators(path):
    trace = _read(path)
    events = trace.events
    roots, partners = backward_partners(trace)
    found = partners >= 0
    assert (events.start_ns[partners[found]] < events.start_ns[roots[found]]).all()
    assert (events.kind[partners[found]] == Kind.OPERATOR).all()
    assert not np.isin(partners[found], roots).any()
    numbered = events.sequence[roots] >= 0
    exact = found & (events.sequence[partners] == events.sequence[roots])
    expected = next((counts for name, counts in _PARTNERS.items() if path.name.startswith(name)), None)
    if not path.name.startswith("msprof"):
        assert (numbered.sum(), found.sum(), exact.sum()) == (expected or (0, 0, 0))


# Device events without a launch, where there are any: launched before the window, or cropped away.
_NOT_LAUNCHED = {
    "ao-ref_ep_moe_fwd": 4,
    "holistictraceanalysis-mtia": 244,
    "msprof": 2,
    "param-worker1": 64,
    "param-worker3": 64,
    "torch-profile-trace_04": 164,
    "torch-profile-trace_05": 1,
    "torchrec-ip-172-31-16-248.us-east-2.compute.internal_24049": 94,
    "torchrec-ip-172-31-16-248.us-east-2.compute.internal_24050": 94,
    "torchrec-ip-172-31-16-248.us-east-2.compute.internal_24051": 92,
    "torchrec-ip-172-31-16-248.us-east-2.compute.internal_24052": 94,
    "tracelens-mi300-resnet_act_checkpoint": 968,
    "tracelens-qwen": 509,
}


def test_device_work_is_launched_by_a_call_with_its_correlation(path):
    trace = _read(path)
    events = trace.events
    call = launches(trace)
    device = (events.kind >= Kind.KERNEL) & (events.kind <= Kind.MEMSET)
    assert (call[events.kind < Kind.KERNEL] == -1).all()
    launched = device & (call >= 0)
    assert np.isin(events.kind[call[launched]], [Kind.RUNTIME, Kind.OPERATOR]).all()
    if not path.name.startswith("msprof"):
        assert (events.correlation[call[launched]] == events.correlation[launched]).all()
    lost = next((count for name, count in _NOT_LAUNCHED.items() if path.name.startswith(name)), 0)
    assert (device & (call < 0)).sum() == lost


def test_ascend_work_is_launched_from_the_thread_of_its_operators():
    trace = read_trace(next(path for path in shared_paths() if path.name.startswith("msprof")))
    events = trace.events
    kernels = np.flatnonzero(events.kind == Kind.KERNEL)
    call = launches(trace)[kernels]
    assert len(kernels) == 274
    assert {trace.strings[i] for i in events.name[call].tolist()} == {"Enqueue"}
    # torch_npu's own arrow from operator to kernel starts just before the Enqueue.
    arrows = {e["id"]: e for e in _by_hand(next(p for p in shared_paths() if p.name.startswith("msprof")))
              if e.get("cat") == "async_npu" and e["ph"] == "s"}  # fmt: skip
    for kernel, launch in zip(kernels.tolist(), call.tolist(), strict=True):
        arrow = arrows[int(events.start_ns[kernel])]
        assert trace.threads[events.thread[launch]].tid == arrow["tid"]
        assert 0 <= events.start_ns[launch] - _ns(arrow["ts"]) < 5_000
