import { describe, expect, it } from "vitest";
import { folderOf, isSame, only } from "../src/dashboard/shown";

describe("what a dashboard is of", () => {
  it("is a folder, by itself or by a trace in it", () => {
    expect([folderOf("/w/runs"), folderOf("/w/runs/a.pt.trace.json.gz")].map(({ words }) => words)).toEqual([
      ["--logdir", "/w/runs"],
      ["--logdir", "/w/runs"],
    ]);
  });

  it("is a run's own traces, whatever lies beside them", () => {
    const run = only(["/w/runs/a.rank0.json", "/w/runs/a.rank1.json"]);
    expect(run.words).toEqual(["--trace", "/w/runs/a.rank0.json", "--trace", "/w/runs/a.rank1.json"]);
    expect([run.title, only(["/w/a.json"]).title]).toEqual(["/w/runs (2 traces of one run)", "/w/a.json"]);
    expect([isSame(run, only(["/w/runs/a.rank0.json"])), isSame(run, { ...run, title: "" }), isSame(run, undefined)]).toEqual([false, true, false]);
  });
});
