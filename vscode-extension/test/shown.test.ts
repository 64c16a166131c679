import { describe, expect, it } from "vitest";
import { isSame, only } from "../src/tensorboard/shown";

describe("what TensorBoard shows", () => {
  it("is a run's own traces, whatever lies beside them", () => {
    const run = only(["/w/runs/a.rank0.json", "/w/runs/a.rank1.json"]);
    expect(run.words).toEqual(["--trace", "/w/runs/a.rank0.json", "--trace", "/w/runs/a.rank1.json"]);
    expect([run.title, only(["/w/a.json"]).title]).toEqual(["/w/runs (2 traces of one run)", "/w/a.json"]);
    expect([isSame(run, only(["/w/runs/a.rank0.json"])), isSame(run, { ...run, title: "" }), isSame(run, undefined)]).toEqual([false, true, false]);
  });
});
