"""Reading built traces whose content is known, in every shape that recorders have given them."""

import gzip
import json

import pytest

from deepscope.errors import NotATraceError, NoTraceError, TruncatedTraceError
from deepscope.trace.kinds import Kind
from deepscope.trace.kineto import pieces, source
from deepscope.trace.kineto.pieces import spans
from deepscope.trace.read import read_trace
from trace_builder import BACKWARD, MAIN, PROCESS, TraceBuilder


def _built():
    return (
        TraceBuilder(deviceProperties=[{"id": 0, "name": "Simulated"}], baseTimeNanoseconds=17)
        .step(1, 0, 100_000)
        .line("/home/me/train.py", 12, "main", 10, 90_000, first_line=3)
        .module("Linear", "encoder.fc", 20, 40_000, python_module="torch.nn.modules.linear")
        .op("aten::mm", 1_001, 20_002, sequence=5, dims=[[2, 3], [3, 4]], stack="/home/me/train.py(12): main")
        .kernel("gemm", 2_000, 30_003, 4_004)
        .memcpy("HtoD", 4096, 50_000, 51_000, 700)
        .backward("MmBackward0", 60_000, 9_000, 5)
        .flow(1_001, 60_000)
        .memory(1_500, 512, total=1024)
        .counter("Power", 40_000, gpu0=250.5, gpu1=99)
        .name_process(PROCESS, "python")
        .name_thread(PROCESS, MAIN, "main thread")
    )


def _rows(trace):
    e = trace.events
    return [
        (trace.strings[e.name[i]], Kind(e.kind[i]).name, int(e.start_ns[i]), int(e.duration_ns[i]))
        for i in range(len(e))
    ]


def _bytes(tmp_path, data, name="trace.json"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_a_built_trace_comes_back_column_by_column(tmp_path):
    trace = read_trace(_built().write(tmp_path / "t.pt.trace.json.gz"))
    assert _rows(trace) == [
        ("ProfilerStep#1", "ANNOTATION", 0, 100_000),
        ("/home/me/train.py(12): main", "LINE_SCOPE", 10, 90_000),
        ("nn.Module: Linear", "MODULE_SCOPE", 20, 40_000),
        ("aten::mm", "OPERATOR", 1_001, 20_002),
        ("cudaLaunchKernel", "RUNTIME", 2_000, 1),
        ("gemm", "KERNEL", 30_003, 4_004),
        ("cudaMemcpyAsync", "RUNTIME", 50_000, 1),
        ("Memcpy HtoD (Pageable -> Device)", "MEMCPY", 51_000, 700),
        ("autograd::engine::evaluate_function: MmBackward0", "OPERATOR", 60_000, 9_000),
        ("MmBackward0", "OPERATOR", 60_001, 8_998),
    ]
    e = trace.events
    assert (e.sequence[3], e.fwd_thread[3], e.sequence[8], e.fwd_thread[8]) == (5, 0, 5, 1)
    assert (e.correlation[4], e.correlation[5], e.device[5], e.stream[5]) == (1, 1, 0, 7)
    assert (e.size_bytes[7], e.size_bytes[5]) == (4096, -1)
    assert json.loads(trace.strings[e.shapes[3]]) == [[2, 3], [3, 4]]
    assert trace.strings[e.call_stack[3]] == "/home/me/train.py(12): main"
    line, module = trace.scopes[e.scope[1]], trace.scopes[e.scope[2]]
    assert (line.file, line.line, line.name, line.first_line) == ("/home/me/train.py", 12, "main", 3)
    assert (module.name, module.path, module.python_module) == ("Linear", "encoder.fc", "torch.nn.modules.linear")
    assert trace.flows.ts_ns.tolist() == [1_001, 60_000]
    assert trace.flows.is_start.tolist() == [True, False]
    assert (trace.memory.size_bytes[0], trace.memory.total_allocated_bytes[0], trace.memory.device_type[0]) == (
        512,
        1024,
        1,
    )
    counters = trace.counters
    assert [(trace.strings[n], v) for n, v in zip(counters.series, counters.value, strict=True)] == [
        ("gpu0", 250.5),
        ("gpu1", 99.0),
    ]
    main = trace.threads[e.thread[0]]
    assert (main.pid, main.tid, main.process_name, main.name, main.is_device) == (
        PROCESS,
        MAIN,
        "python",
        "main thread",
        False,
    )
    assert trace.threads[e.thread[5]].is_device
    assert trace.threads[e.thread[8]].tid == BACKWARD
    assert trace.base_ns == 17
    assert trace.metadata["traceName"] == "built.json"
    assert trace.has_line_scopes


def _reordered(document):
    return {"traceEvents": document["traceEvents"], **{k: v for k, v in document.items() if k != "traceEvents"}}


def _halves(data):
    return data[:999], data[999:]


_SHAPES = {
    "indented": lambda d: json.dumps(d, indent=2).encode(),
    "compact": lambda d: json.dumps(d, separators=(",", ":")).encode(),
    "events first": lambda d: json.dumps(_reordered(d)).encode(),
    "with a byte order mark": lambda d: b"\xef\xbb\xbf" + json.dumps(d).encode(),
    "spread over lines": lambda d: json.dumps(d).replace("}, {", "}\n ,\r\n\t{ ").encode(),
    "gzip": lambda d: gzip.compress(json.dumps(d).encode()),
    "two gzip members": lambda d: b"".join(gzip.compress(half) for half in _halves(json.dumps(d).encode())),
    "gzip and padding": lambda d: gzip.compress(json.dumps(d).encode()) + b"\0" * 700,
    "gzip and garbage": lambda d: gzip.compress(json.dumps(d).encode()) + b"garbage",
    "the key inside the head too": lambda d: json.dumps({"other": {"traceEvents": [{"ph": "X"}]}, **d}).encode(),
    "a tail that looks like events": lambda d: json.dumps({**_reordered(d), "log": [{}, {"ph": "X"}], "z": 1}).encode(),
    "words for ids": lambda d: json.dumps(d).replace('"id": 1', '"id": "1"').encode(),
    "times as text": lambda d: json.dumps(
        {**d, "traceEvents": [{**e, **{k: str(e[k]) for k in ("ts", "dur") if k in e}} for e in d["traceEvents"]]}
    ).encode(),
}  # fmt: skip


@pytest.mark.parametrize("shape", _SHAPES)
def test_the_shape_of_the_file_changes_nothing(tmp_path, shape):
    builder = _built()
    trace = read_trace(_bytes(tmp_path, _SHAPES[shape](builder.document())))
    assert _rows(trace) == _rows(read_trace(builder.write(tmp_path / "plain.json")))
    assert trace.metadata["traceName"] == "built.json"
    assert trace.flows.ts_ns.tolist() == [1_001, 60_000]


def test_a_bare_array_of_events_is_a_trace(tmp_path):
    builder = _built()
    trace = read_trace(_bytes(tmp_path, json.dumps(builder.events).encode()))
    assert _rows(trace) == _rows(read_trace(builder.write(tmp_path / "plain.json")))
    assert trace.metadata == {}
    assert trace.scopes[trace.events.scope[1]].line == 12  # by the event's name


@pytest.mark.parametrize("chunk", [1, 7, 64, 300])
def test_pieces_of_any_size_give_the_same(tmp_path, chunk):
    data = _built().dumps()
    whole = list(pieces.Pieces([data], "x"))
    stream = pieces.Pieces((data[i : i + chunk] for i in range(0, len(data), chunk)), "x")
    parts = [(e.name, e.ph, e.ts) for piece in stream for e in piece.events]
    assert parts == [(e.name, e.ph, e.ts) for piece in whole for e in piece.events]
    assert not stream.damage
    assert stream.metadata["traceName"] == "built.json"


_TIMES = {
    "1712195495519689.047": 1712195495519689047,
    '"1712195495519689.047"': 1712195495519689047,
    "1704161511420306.491": 1704161511420306491,
    "1623142623460121": 1623142623460121000,
    "2915995397672.546": 2915995397672546,
    "8796093022207.999": 8796093022207999,
    "8796093022208.001": 8796093022208001,
    "0.001": 1,
    "12.77012757357446": 12770,
    "1.5e3": 1500000,
    "-3.25": -3250,
}


@pytest.mark.parametrize("text", _TIMES)
def test_no_nanosecond_of_a_time_is_lost(tmp_path, text):
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": %s, "dur": %s}'
    data = '{"traceEvents": [' + event % (text, "0.003") + "," + event % ("1", text) + "]}"
    events = read_trace(_bytes(tmp_path, data.encode())).events
    assert events.start_ns.tolist() == [_TIMES[text], 1000]
    assert events.duration_ns.tolist() == [3, max(_TIMES[text], 0)]


_EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "tid": 1, "ts": 5, "dur": 2}'
_START = b'{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":1,'
_ODD = {
    "Infinity": (_START + b'"name":"k","args":{"correlation":3,"o":Infinity}}', "k"),
    "nan": (_START + b'"name":"inf","args":{"o": -nan, "p":[inf]}}', "inf"),
    "arguments in a list": (b'{"ph":"X","cat":"cpu_op","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":[1,2]}', "k"),
    "bytes that are no UTF-8": (_START + b'"name":"a\xffb"}', "a\ufffdb"),
    "a raw line feed": (b'{"ph":"X","cat":"cpu_op","name":"a\nb","pid":0,"tid":7,"ts":1,"dur":1}', "a\nb"),
    "a name that is a number": (b'{"ph":"X","cat":"cpu_op","name":12,"pid":0,"tid":7,"ts":1,"dur":1}', "12"),
    "no category": (b'{"ph":"X","name":"k","pid":0,"tid":7,"ts":1,"dur":1}', "k"),
    "null everywhere": (b'{"ph":"X","cat":null,"name":"k","pid":null,"tid":null,"ts":1,"dur":null,"args":null}', "k"),
    "a list for a thread": (b'{"ph":"X","name":"k","pid":[1],"tid":{},"ts":1,"dur":1}', "k"),
    "huge ids": (_START + b'"name":"k","tid":99999999999999999999999,"args":{"correlation":9999999999999999999}}', "k"),
    "a lone surrogate": (b'{"ph":"X","cat":"cpu_op","name":"\\ud800","pid":0,"tid":7,"ts":1,"dur":1}', "?"),
}  # fmt: skip


@pytest.mark.parametrize("oddity", _ODD)
def test_one_odd_event_spoils_no_other(tmp_path, oddity):
    odd, name = _ODD[oddity]
    data = b'{"traceEvents": [' + b", ".join([_EVENT, odd, _EVENT]) + b"]}"
    trace = read_trace(_bytes(tmp_path, data))
    assert [trace.strings[i] for i in trace.events.name] == ["good", name, "good"]


_IDS = ("correlation", "External id", "Sequence number", "Fwd thread id", "device", "stream", "bytes", "scope")


@pytest.mark.parametrize("value", [[], [1, [2]], [1, 2], {"a": {}}, True, None, 1.5, -5, 2**63, 10**40, 1e30, "9" * 50])
@pytest.mark.parametrize("category", ["cpu_op", "kernel", "cuda_runtime", "python_line", "xpu_runtime"])
def test_arguments_of_any_type_spoil_nothing(tmp_path, category, value):
    builder = TraceBuilder().event(category, "odd", 1, 2, **dict.fromkeys(_IDS, value))
    builder.event(category, "good", 5, 2, correlation=7)
    trace = read_trace(builder.write(tmp_path / "t.json"))
    assert [trace.strings[i] for i in trace.events.name] == ["odd", "good"]
    assert trace.events.correlation[1] == (-1 if category in ("cpu_op", "python_line") else 7)


def test_an_event_without_a_usable_time_is_left_out(tmp_path):
    bad = [
        b'{"ph": "X", "name": "none"}',
        b'{"ph": "X", "name": "word", "ts": "soon"}',
        b'{"ph": "X", "name": "far", "ts": 1e999}',
    ]
    trace = read_trace(_bytes(tmp_path, b"[" + b",".join([*bad, _EVENT]) + b"]"))
    assert [trace.strings[i] for i in trace.events.name] == ["good"]


_HOSTILE_TABLES = [
    None, 7, [], {"scopes": None}, {"scopes": {}, "files": 3}, {"scopes": [[0, 9, 12, "main"]], "files": [{}]},
    {"scopes": [[0, 0, "12", "main"]], "files": [{"path": "/a.py"}]},
    {"scopes": [[0, 0, 12]], "files": [{"path": "/a.py"}]},
    {"scopes": [[True, 0, 12, "main", 1, "", ""]], "files": [{"path": "/a.py"}]},
    {"scopes": [[0, 0, 10**12, "main", 1, "", ""]], "files": [{"path": "/a.py"}]},
    {"scopes": [[1, -1, 0, "Linear", 0, "", ""]], "files": []},
]  # fmt: skip


@pytest.mark.parametrize("table", _HOSTILE_TABLES, ids=range(len(_HOSTILE_TABLES)))
def test_a_bad_table_of_scopes_gives_way_to_the_name(tmp_path, table):
    builder = TraceBuilder(deepscope=table).event("python_line", "/x/b.py(12): main", 1, 2, scope=0)
    trace = read_trace(builder.write(tmp_path / "t.json"))
    scope = trace.scopes[trace.events.scope[0]]
    assert (scope.file, scope.line, scope.name) == ("/x/b.py", 12, "main")


def test_ascend_and_old_names_have_their_kinds(tmp_path):
    builder = (
        TraceBuilder()
        .event("Operator", "ProfilerStep#3", 0, 9)
        .event("Operator", "aten::add", 0, 5)
        .event("xpu_runtime", "urEnqueueKernelLaunch", 1, 1)
        .event("privateuse1_driver", "launch", 2, 1)
        .event("", "MatMulV2", 3, 1, pid=800, tid=3)
        .event("", "MEMCPY_ASYNC", 4, 1, pid=800, tid=3)
        .event("", "EVENT_WAIT", 5, 1, pid=800, tid=3)
        .event("", "AscendCL@aclrtMemcpy", 6, 1, pid=801, tid=MAIN)
        .event("mtia_ccp_events", "dma_request", 7, 1)
        .event("brand_new", "x", 8, 1)
        .name_process(800, "Ascend Hardware")
        .name_process(801, "CANN")
    )
    kinds = [row[1] for row in _rows(read_trace(builder.write(tmp_path / "t.json")))]
    assert kinds == [
        "ANNOTATION", "OPERATOR", "RUNTIME", "RUNTIME", "KERNEL", "MEMCPY", "DEVICE_SPAN", "RUNTIME", "MEMCPY", "OTHER"
    ]  # fmt: skip


_NO_TRACES = {
    b"": "is empty",
    b" \n": "is empty",
    b"hello": "holds no JSON",
    b"{nonsense": "holds no JSON",
    bytes(range(256)): "holds binary data",
    b'{"a": 1}': "is JSON without `traceEvents`",
    b'{"traceEvents": null}': "is JSON without `traceEvents`",
    b"[1, 2]": "is JSON without events",
    b"[]": "is JSON without events",
    gzip.compress(b""): "is empty",
}


@pytest.mark.parametrize("data", _NO_TRACES, ids=_NO_TRACES.values())
def test_what_is_no_trace_is_told_in_one_line(tmp_path, data):
    path = _bytes(tmp_path, data)
    with pytest.raises(NotATraceError) as info:
        read_trace(path)
    assert str(info.value).startswith(f"{path}: {_NO_TRACES[data]}")
    assert "\n" not in str(info.value)


def test_a_trace_without_events_is_a_trace(tmp_path):
    trace = read_trace(_bytes(tmp_path, b'{"schemaVersion": 1, "traceEvents": []}'))
    assert len(trace.events) == 0
    assert trace.metadata == {"schemaVersion": 1}


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NoTraceError, match=r"gone\.json: no such file"):
        read_trace(tmp_path / "gone.json")
    with pytest.raises(NoTraceError, match="is a folder"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        b'[{"ph": "X", "ts": 1, "args": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}]",
        b'{"traceEvents": [' + b'{"args":' * 100_000,
        b'{"a": ' + b"[" * 100_000,
    ],
    ids=["whole", "cut", "in the head"],
)
def test_nesting_without_end_is_an_error_and_no_crash(tmp_path, data):
    with pytest.raises((TruncatedTraceError, NotATraceError)):
        read_trace(_bytes(tmp_path, data))


def test_progress_runs_to_the_size_of_the_file(tmp_path):
    path = _built().write(tmp_path / "t.json.gz")
    seen = []
    read_trace(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_a_url_is_read_through_fsspec(tmp_path):
    import fsspec

    data = _built().dumps()
    with fsspec.open("memory://runs/t.json", "wb") as file:
        file.write(data)
    assert len(read_trace("memory://runs/t.json").events) == 10
    with pytest.raises(NoTraceError, match="no such file"):
        read_trace("memory://runs/gone.json")


@pytest.mark.parametrize("chunk", [200, 1 << 20])
def test_pairs_of_begin_and_end_are_complete_events(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(source, "READ_BYTES", chunk)
    monkeypatch.setattr(source, "CHUNK_BYTES", chunk)

    def mark(phase, ts, tid=1, **more):
        return {"ph": phase, "ts": ts, "pid": 1, "tid": tid, **more}

    events = [
        mark("E", 0.5),
        mark("B", 1, cat="cpu_op", name="outer", args={"Sequence number": 7}),
        mark("B", 2, tid=2, cat="cpu_op", name="beside"),
        mark("B", 2.5, cat="cpu_op", name="inner"),
        mark("E", 3.25, args={"Sequence number": 8}),
        mark("E", 4, tid=2),
        mark("E", 9),
        mark("B", 10, cat="cpu_op", name="never ended"),
    ]
    trace = read_trace(_bytes(tmp_path, json.dumps({"traceEvents": events}).encode()))
    found = zip(_rows(trace), trace.events.sequence.tolist(), strict=True)
    assert sorted(found) == [
        (("beside", "OPERATOR", 2000, 2000), -1),
        (("inner", "OPERATOR", 2500, 750), 8),
        (("outer", "OPERATOR", 1000, 8000), 7),
    ]


def test_an_event_larger_than_many_chunks_is_looked_at_a_few_times(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "READ_BYTES", 1000)
    monkeypatch.setattr(source, "CHUNK_BYTES", 1000)
    seen = []
    monkeypatch.setattr(pieces, "spans", lambda buffer: seen.append(len(buffer)) or spans(buffer))
    builder = TraceBuilder().op("before", 1, 2).op("large", 5, 2, text='},{"' * 100_000).op("after", 9, 2)
    trace = read_trace(builder.write(tmp_path / "t.json"))
    assert [trace.strings[i] for i in trace.events.name] == ["before", "large", "after"]
    assert sum(seen) < 3 * (tmp_path / "t.json").stat().st_size


@pytest.mark.parametrize("bad", [b'"\xedA"', b"1e400"])
def test_a_counter_that_cannot_be_understood_has_no_samples_and_costs_nothing_else(tmp_path, bad):
    text = (
        TraceBuilder().op("aten::mm", 10, 7, dims=[]).counter("Power", 10, gpu0=1.5).counter("Power", 20, bad=0).dumps()
    )
    path = tmp_path / "a.json"
    path.write_bytes(text.replace(b'{"bad": 0}', b'{"bad": ' + bad + b"}"))
    assert bad in path.read_bytes()
    trace = read_trace(path)
    assert len(trace.events) == 1
    assert trace.counters.value.tolist() == [1.5]
