import { describe, expect, it } from "vitest";
import { staleFiles } from "../pages.mjs";

describe("the dashboard's pages in the Python package", () => {
  it("are checked in as their sources make them (else: scripts/build)", async () => {
    expect(await staleFiles()).toEqual([]);
  });
});
