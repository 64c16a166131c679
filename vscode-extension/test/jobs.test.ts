import { describe, expect, it } from "vitest";
import { attaching, endWords, failureIn, jobRow, jobsIn, problemsIn, problemWords, stepsProblem, type Job } from "../src/run/jobs";
import { ShapeError } from "../src/shape";

const JOB: Job = {
  pids: [4711, 4712],
  program: "/home/me/train.py",
  folder: "/home/me/deepscope_logs",
  ranks: [0, 1],
  world_size: 4,
  step: 12_345,
  step_ns: 2_340_000,
  state: "idle",
};

describe("jobs that wait", () => {
  it("are read from what the command writes", () => {
    expect(jobsIn(JSON.stringify([JOB, { ...JOB, pids: [] }]))).toEqual([JOB]);
    expect(jobsIn("[]\n")).toEqual([]);
  });

  it("of another shape are no jobs", () => {
    expect(() => jobsIn('[{"pids": ["4711; rm -rf /"]}]')).toThrow(ShapeError);
    expect(() => jobsIn("no job")).toThrow(SyntaxError);
  });

  it("are told by process, step and ranks", () => {
    expect(jobRow(JOB)).toEqual({
      label: "train.py",
      description: "pid 4711, step 12,345 of 2.3 ms, 2 of 4 ranks, idle",
      detail: "/home/me/train.py · /home/me/deepscope_logs",
      job: JOB,
    });
    const alone = { ...JOB, program: "", pids: [7], world_size: 1, ranks: [0], step: 0, step_ns: 0, state: "" };
    expect(jobRow(alone)).toMatchObject({ label: "process 7", description: "pid 7, step 0", detail: "/home/me/deepscope_logs" });
  });

  it("with icons in their names show none", () => {
    expect(jobRow({ ...JOB, program: "$(flame).py" }).label).not.toContain("$(");
  });

  it("are recorded by the number of their first process", () => {
    expect(attaching(JOB, 3)).toEqual(["attach", "4711", "--steps", "3"]);
  });
});

describe("a number of steps", () => {
  it.each(["1", " 5 ", "10000"])("may be %s", (typed) => expect(stepsProblem(typed)).toBeUndefined());
  it.each(["", "0", "-1", "1.5", "ten", "1e3", "10001"])("may not be %j", (typed) => expect(stepsProblem(typed)).toContain("from 1 to 10,000"));
});

describe("a listing that fails", () => {
  it("is told by its last line", () => {
    const told = (stderr: string): string => failureIn(stderr, "exit 1", "/usr/bin/python3");
    expect(told("Traceback\ndeepscope: /run/user/0: is not a folder of yours\n")).toBe("/run/user/0: is not a folder of yours");
    expect(told("\n")).toBe("exit 1");
  });

  it("by a DeepScope without the command says what helps", () => {
    for (const said of ["Error: No such command 'attach'.", "Error: no such command: attach; there are: run, report"]) {
      expect(failureIn(`Usage: deepscope [OPTIONS]\n\n${said}\n`, "exit 2", "/usr/bin/python3")).toContain("run: /usr/bin/python3 -m pip install --upgrade deepscope");
    }
  });
});

describe("a job that waits and does not answer", () => {
  it("is told, and warnings of Python are not", () => {
    const silent = "process 4711 does not answer: it is stopped, or busy outside Python";
    expect(problemsIn(`/x.py:1: FutureWarning: old\r\ndeepscope: ${silent}\r\n`)).toEqual([silent]);
    expect(problemsIn("")).toEqual([]);
    expect(problemWords([silent])).toBe(silent);
    expect(problemWords([silent, "b", "c"])).toBe(`${silent}; and 2 more like this`);
  });
});

describe("the end of a recording", () => {
  it.each([0, 130, undefined])("is not told where the exit code is %s", (code) => expect(endWords(JOB, code)).toBeUndefined());
  it("is told where it failed", () => expect(endWords(JOB, 1)).toMatch(/^train\.py was not recorded, or/));
});
