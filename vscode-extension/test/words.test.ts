import { describe, expect, it } from "vitest";
import { visible } from "../src/pages/words";

describe("names of a trace", () => {
  it("do not steer what stands around them", () => {
    expect(visible("a/ü b/😀.py:1")).toBe("a/ü b/😀.py:1");
    expect(visible("\u202egnp.exe\u001b[2J\u200b\u2028\ud800")).toBe("\\u{202e}gnp.exe\\u{1b}[2J\\u{200b}\\u{2028}\\u{d800}");
  });
});
