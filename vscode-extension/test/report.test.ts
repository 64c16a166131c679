import { describe, expect, it } from "vitest";
import { staleFiles } from "../report.mjs";

describe("the page of deepscope export --to html", () => {
  it("is checked in as its sources make it (else: node report.mjs)", async () => {
    expect(await staleFiles()).toEqual([]);
  });
});
