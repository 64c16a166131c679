import { describe, expect, it } from "vitest";
import { blocksOf, codeOf, inlineOf } from "../src/pages/parts/markup";

describe("a page of the documentation", () => {
  it("has headings, paragraphs, lists and code", () => {
    const text = "# DS001: Title\n\nOne\nparagraph.\n\n- first\n  goes on\n- second\n\n```python\nx = 1\n\n# no heading\n```\nAfter.";
    expect(blocksOf(text)).toEqual([
      { kind: "heading", level: 1, text: "DS001: Title" },
      { kind: "paragraph", text: "One paragraph." },
      { kind: "list", items: ["first goes on", "second"] },
      { kind: "code", text: "x = 1\n\n# no heading" },
      { kind: "paragraph", text: "After." },
    ]);
  });

  it("has code, links and emphasis in its words, and HTML is text", () => {
    expect(inlineOf("See `x[a](b)` and [pages](DS002.md), *now* **or** <b>never</b>.")).toEqual([
      { kind: "text", text: "See " },
      { kind: "code", text: "x[a](b)" },
      { kind: "text", text: " and " },
      { kind: "link", text: "pages", target: "DS002.md" },
      { kind: "text", text: ", " },
      { kind: "emphasis", text: "now" },
      { kind: "text", text: " " },
      { kind: "strong", text: "or" },
      { kind: "text", text: " <b>never</b>." },
    ]);
  });

  it("ends where a fence is never closed", () => {
    expect(blocksOf("```\nx")).toEqual([{ kind: "code", text: "x" }]);
  });
});

describe("advice", () => {
  it("has code in backticks and nothing else: its brackets are no links", () => {
    expect(codeOf("Call `f(x)` on [this](javascript:alert(1)) `alone")).toEqual([
      { kind: "text", text: "Call " },
      { kind: "code", text: "f(x)" },
      { kind: "text", text: " on [this](javascript:alert(1)) `alone" },
    ]);
  });
});
