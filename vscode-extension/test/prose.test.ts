import { h } from "preact";
import { describe, expect, it } from "vitest";
import { Page, Prose } from "../src/pages/parts/Prose";
import { drawn, type Drawn } from "./drawn";

/** What is drawn, as HTML. */
function html(of: Drawn): string {
  const inside = of.childNodes.map(html).join("");
  return of.localName === "" ? of.data.replaceAll("<", "&lt;") : `<${of.localName}${of.attributes.map(({ name, value }) => ` ${name}="${value}"`).join("")}>${inside}</${of.localName}>`;
}

async function page(text: string): Promise<string> {
  const all = await drawn(h(Page, { text, linked: (name: string) => (name === "DS002.md" ? "#/findings?code=DS002" : undefined) }));
  return all.childNodes[0]?.childNodes.map(html).join("") ?? "";
}

describe("a page of the documentation", () => {
  it("has headings, paragraphs, lists, tables and code", async () => {
    const text = "# DS001: Title\n\nOne\nparagraph.\n\n## Part\n\n- first\n  goes on\n- second\n\n1. one\n\n| a | b |\n|---|---|\n| `1` | 2 |\n\n```python\nx = 1 < 2\n\n# no heading\n```\nAfter.";
    expect(await page(text)).toBe(
      "<h3>DS001: Title</h3><p>One\nparagraph.</p><h4>Part</h4><ul><li>first\ngoes on</li><li>second</li></ul><ol><li>one</li></ol>" +
        "<table><tr><th>a</th><th>b</th></tr><tr><td><code>1</code></td><td>2</td></tr></table><pre>x = 1 &lt; 2\n\n# no heading</pre><p>After.</p>",
    );
  });

  it("has code, links and emphasis in its words", async () => {
    expect(await page("See `x[a](b)` and [pages](DS002.md), *now* **or** [there](https://pytorch.org/x).")).toBe(
      '<p>See <code>x[a](b)</code> and <a href="#/findings?code=DS002">pages</a>, <em>now</em> <strong>or</strong> ' +
        '<a href="https://pytorch.org/x" target="_blank" rel="noreferrer noopener">there</a>.</p>',
    );
  });

  it("lets no HTML and no other address through", async () => {
    for (const text of ["<b onclick=x>never</b>", "<script>alert(1)</script>", "![x](https://a.b/c.png)", "<https://a.b/>", "https://a.b/ www.a.b a@b.cd"]) {
      expect((await page(text)).replace(/^<p>|<\/p>$/g, "")).toBe(text.replaceAll("<", "&lt;"));
    }
    for (const target of ["javascript:alert(1)", "data:text/html,x", "//a.b/c", "http://a.b/c", "DS003.md", "vscode://x/y"]) {
      expect(await page(`[words](${target})`)).toBe("<p>words</p>");
    }
  });

  it("ends where a fence is never closed", async () => {
    expect(await page("```\nx")).toBe("<pre>x</pre>");
  });
});

describe("advice", () => {
  it("has code in backticks and nothing else: its brackets are no links", async () => {
    const all = await drawn(h(Prose, { text: "Call `f(x)` on [this](javascript:alert(1)) `alone" }));
    expect(html(all)).toBe("<main>Call <code>f(x)</code> on [this](javascript:alert(1)) `alone</main>");
  });
});
