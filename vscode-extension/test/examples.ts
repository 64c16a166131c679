/** Small answers of a server, for tests. */

import type { HotAmount, HotGroup, HotLine, HotLines, LinePath, ListedTrace, Remark, Run, ShownTrace, Status } from "../src/server/contract";

export function amount(share: number, words: string): HotAmount {
  return { share, words: `${Math.round(100 * share)} % · ${words}` };
}

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
    standing: "same",
    share: 0.38,
    perStepNs: 12_400_000,
    baselineNs: null,
    baselineWords: "",
    changeWords: "",
    wholeWords: "device 37.2 ms",
    exact: true,
    amounts: { cost: amount(0.38, "12.4 ms"), device: amount(0.38, "12.4 ms") },
    numbers: { self_device_ns: 37_200_000 },
    ...change,
  };
}

export function hotGroup(name: string, file: string, amounts: HotGroup["amounts"]): HotGroup {
  return { function: name, file, shortFile: file.replace("/p/", ""), amounts };
}

export function hotLines(change: Partial<HotLines>): HotLines {
  return { metric: "device", stepWords: "per step", lines: [], functions: [], files: [], vanished: [], vanishedWords: "", ...change };
}

export function linePath(name: string, line: number, ns: number, children: LinePath[] = []): LinePath {
  const place = { function: name, file: "/p/model.py", line, uri: "file:///p/model.py", currentLine: line + 100 };
  return { ...place, kind: "line", name, wholeName: name, ns, timeWords: `${ns} ns`, detailWords: "", children };
}

/** A part of a line's work, without a place. */
export function partPath(kind: LinePath["kind"], name: string, ns: number, children: LinePath[] = []): LinePath {
  return { ...linePath(name, 0, ns, children), kind, function: "", file: "", uri: null, currentLine: null };
}

export function listedTrace(change: Partial<ListedTrace> = {}): ListedTrace {
  return {
    path: "/w/runs/a/host_1.fit.rank0.1795185182862936653.pt.trace.json.gz",
    name: "host_1.fit.rank0.1795185182862936653.pt.trace.json.gz",
    sizeBytes: 2 ** 20,
    sizeWords: "1 MiB",
    recordedNs: 1_000_000_000_000,
    selected: false,
    run: "",
    program: "",
    stepNs: null,
    stepTimeWords: "",
    rank: null,
    worldSize: 1,
    window: null,
    stage: "",
    device: "",
    commit: "",
    problem: "",
    ...change,
  };
}

export function run(change: Partial<Run>): Run {
  return { id: "a", recordedNs: 1_000_000_000_000, program: "", stepTimeWords: "", ranks: 1, selected: false, traces: [listedTrace()], ...change };
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
    alsoRecorded: [],
    ranks: [0],
    steps: 3,
    firstStep: 2,
    lastStep: 4,
    stepsWords: "steps 2–4",
    verdict: "Runs on the CPU: 38 % of the cost is at model.py:42, mostly operators.",
    step: null,
    commit: "",
    dirty: false,
    deviceNs: 1,
    busyNs: 1,
    idleNs: 0,
    wallNs: 1,
    warnings: [],
    ...change,
  };
}

export function remark(words: string, detail = ""): Remark {
  return { words, detail };
}

export function status(change: Partial<Status> = {}): Status {
  const nothing = { message: "", root: null, baseline: null, comparison: null, newer: null, remarks: [] };
  return { ...nothing, state: "ready", trace: shownTrace(), stepTimeWords: "step 2.79 s", ...change };
}
