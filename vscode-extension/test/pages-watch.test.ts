import { describe, expect, it } from "vitest";
import { look, newerThan } from "../src/pages/app/runs";
import type { Run } from "../src/pages/contract";
import { HttpSource } from "../src/pages/source/http";
import type { Source } from "../src/pages/source/source";

/** A source whose server gives these answers, one after the other; undefined where there is none. */
async function looks(...answers: readonly (readonly [number, unknown] | undefined)[]): Promise<string[]> {
  const source: Source = new HttpSource("./api/", "token");
  const found: string[] = [];
  let last: { server: string; runs: string } | undefined;
  const before = globalThis.fetch;
  try {
    for (const answer of answers) {
      globalThis.fetch = async () => {
        if (answer === undefined) {
          throw new TypeError("Failed to fetch");
        }
        return Promise.resolve(new Response(JSON.stringify(answer[1]), { status: answer[0] }));
      };
      const one = await look(source, last);
      last = "news" in one ? one.news : last;
      found.push(one.state === "failed" ? one.problem : one.state);
    }
  } finally {
    globalThis.fetch = before;
  }
  return found;
}

describe("a page that looks for new runs", () => {
  it("tells other runs, another server and none", async () => {
    const same = [200, { server: "a", runs: "1" }] as const;
    const found = await looks(same, same, [200, { server: "a", runs: "2" }], undefined, [200, { server: "b", runs: "2" }], [401, { error: "the token in the address is wrong" }], [500, { error: "?" }]);
    expect(found).toEqual([
      "same",
      "same",
      "changed",
      "The server does not answer: it was ended, or the connection is gone.",
      "restarted",
      "The server was started anew: open the address that it printed.",
      "",
    ]);
  });
});

describe("a newer run", () => {
  const run = (id: string, problem = ""): Run => ({ id, title: id, name: "", folder: "", recordedAt: "", ranks: [], stages: [], windows: [], traces: 1, sizeBytes: 1, problem });
  const newer = (first: readonly string[], ...runs: readonly Run[]): string | undefined => newerThan(new Set(first), runs)?.id;

  it("was not there at first, and stands before those that were", () => {
    expect(newer(["a"], run("b"), run("a"))).toBe("b");
    expect(newer(["a"], run("a"), run("b"))).toBeUndefined();
    expect(newer(["a", "b"], run("b"))).toBeUndefined();
  });

  it("is one that can be shown", () => {
    expect(newer(["a"], run("c", "is empty"), run("a"))).toBeUndefined();
    expect(newer(["a"], run("c", "is empty"), run("b"), run("a"))).toBe("b");
    expect(newer(["b", "a"], run("b", "turned out to be cut"), run("a"))).toBeUndefined();
  });
});
