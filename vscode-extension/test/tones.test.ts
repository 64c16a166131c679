import { describe, expect, it } from "vitest";
import { toneOf } from "../src/pages/parts/StackBar";
import { chartOf } from "../src/pages/timeline/palette";

describe("a colour", () => {
  it("is that of what a time means, whatever stands beside it", () => {
    expect(["kernel", "compute"].map(toneOf)).toEqual(["tone2", "tone2"]);
    expect(["communication", "collectives"].map(toneOf)).toEqual(["tone3", "tone3"]);
    expect(["memcpy", "memset", "non-compute"].map(toneOf)).toEqual(["tone5", "tone5", "tone5"]);
    expect(["idle", "on no line"].map(toneOf)).toEqual(["tone7", "tone7"]);
    expect(["forward", "backward", "other"].map(toneOf)).toEqual(["phase1", "phase2", "phase4"]);
    expect(["data loader", "loading data"].map(toneOf)).toEqual(["tone1", "tone1"]);
  });

  it("tells the parts of each bar apart", () => {
    for (const parts of [
      ["kernel", "memcpy", "communication", "runtime", "data loader", "CPU", "other"],
      ["compute", "non-compute", "idle"],
      ["host wait", "kernel wait", "other wait"],
      ["launching work", "other work of the CPU", "waiting for the device", "loading data", "the training framework", "on no line"],
      ["data", "forward", "backward", "optimizer", "other"],
      ["training steps", "waiting for data", "validation", "checkpoints", "logging", "before the first step", "everything else"],
    ]) {
      expect(new Set(parts.map(toneOf)).size, parts.join(", ")).toBe(parts.length);
    }
  });

  it("of a counter follows from its title, not from its place", () => {
    expect(chartOf("device 0 busy")).toBe(chartOf("device 7 busy"));
    expect(new Set(["device 0 busy", "device 0 queue", "memory"].map(chartOf)).size).toBe(3);
  });
});
