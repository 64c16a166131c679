/** Small answers of a server, for tests. */

import type { CallPath, HotLine, ListedTrace, ShownTrace, Status } from "../src/server/contract";

export function hotLine(change: Partial<HotLine> = {}): HotLine {
  return {
    function: "Net.forward",
    file: "/p/model.py",
    shortFile: "model.py",
    line: 42,
    uri: "file:///p/model.py",
    currentLine: 42,
    text: "y = self.layer(x)",
    label: "12.4 ms · 38 %",
    share: 0.38,
    totalShare: 0.5,
    perStepNs: 12_400_000,
    baselineNs: null,
    exact: true,
    numbers: { self_device_ns: 37_200_000 },
    ...change,
  };
}

export function callPath(name: string, line: number, totalNs: number, children: CallPath[] = []): CallPath {
  return {
    function: name,
    file: "/p/model.py",
    line,
    uri: "file:///p/model.py",
    currentLine: line + 100,
    selfNs: 0,
    totalNs,
    totalCpuNs: 0,
    share: 0,
    children,
  };
}

export function listedTrace(change: Partial<ListedTrace> = {}): ListedTrace {
  return {
    path: "/w/runs/a/host_1.fit.rank0.1795185182862936653.pt.trace.json.gz",
    name: "host_1.fit.rank0.1795185182862936653.pt.trace.json.gz",
    sizeBytes: 2 ** 20,
    recordedNs: 1_000_000_000_000,
    selected: false,
    run: "",
    program: "",
    stepNs: null,
    rank: null,
    stage: "",
    device: "",
    commit: "",
    ...change,
  };
}

export function shownTrace(change: Partial<ShownTrace> = {}): ShownTrace {
  return {
    path: "/w/runs/a",
    paths: ["/w/runs/a/t.pt.trace.json.gz"],
    metric: "device",
    device: "NVIDIA H100 80GB HBM3",
    recordedAt: "2026-01-01T00:00:00+00:00",
    program: "tools/train.py",
    stepNs: 2_790_000_000,
    stage: "fit",
    ranks: [0],
    steps: 3,
    firstStep: 2,
    lastStep: 4,
    step: null,
    commit: "",
    dirty: false,
    deviceNs: 1,
    busyNs: 1,
    warnings: [],
    ...change,
  };
}

export function status(change: Partial<Status> = {}): Status {
  return { state: "ready", message: "", root: null, trace: shownTrace(), baseline: null, comparison: null, newer: null, ...change };
}
