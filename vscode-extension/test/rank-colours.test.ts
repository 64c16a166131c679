import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const CSS = readFileSync(join(__dirname, "../src/pages/distributed/distributed.css"), "utf8").replace(/\/\*.*?\*\//gs, "");
const LEVELS = [-1, 0, 1, 2, 3, 4];

type Colour = readonly [number, number, number];

/** The pages' own themes, and those of an editor: of the cells the buttons' own colours are no part. */
const THEMES: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ["light", { "--background": "#ffffff", "--text": "#14171c", "--hover": "#eef1f5", "--heat": "226 88 20" }],
  ["dark", { "--background": "#101216", "--text": "#e7eaef", "--hover": "#22272f", "--heat": "251 127 52" }],
  ["an editor, light", { "--background": "#ffffff", "--text": "#3b3b3b", "--hover": "#f2f2f2", "--heat": "226 88 20" }],
  ["an editor, dark", { "--background": "#1f1f1f", "--text": "#cccccc", "--hover": "#2a2d2e", "--heat": "251 127 52" }],
  ["an editor, high contrast", { "--background": "#000000", "--text": "#ffffff", "--hover": "transparent", "--heat": "251 127 52" }],
];

/** What rules say of a property, the last one that does. */
function said(selector: string, property: string): string | undefined {
  const bodies = CSS.split("}").map((rule) => rule.split("{")).flatMap(([head = "", body = ""]) => (head.split(",").some((one) => one.trim() === selector) ? [body] : []));
  return bodies.map((body) => new RegExp(`(?:^|[;\\s])${property}:\\s*([^;]+)`).exec(body)?.[1]).findLast((word) => word !== undefined);
}

function hex(word: string): Colour {
  return [1, 3, 5].map((at) => Number.parseInt(word.slice(at, at + 2), 16)) as unknown as Colour;
}

/** A colour as it stands on the page's own. */
function onPage(word: string, theme: Readonly<Record<string, string>>): Colour {
  const page = hex(theme["--background"] ?? "");
  const plain = word.replace(/var\((--\w+)\)/, (whole, name: string) => ({ "--tone4": "#56b4e9", ...theme })[name] ?? whole);
  if (plain === "transparent") {
    return page;
  }
  const heat = /^rgb\((\d+) (\d+) (\d+)(?: \/ (\d+)%)?\)$/.exec(plain);
  const [, ...parts] = heat ?? [];
  const share = parts[3] === undefined ? 1 : Number(parts[3]) / 100;
  return heat === null ? hex(plain) : (parts.slice(0, 3).map((part, at) => Number(part) * share + (page[at] ?? 0) * (1 - share)) as unknown as Colour);
}

/** By the Web Content Accessibility Guidelines. */
function contrast(one: Colour, other: Colour): number {
  const bright = (colour: Colour): number => {
    const [red, green, blue] = colour.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)) as unknown as Colour;
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark = 0, light = 0] = [bright(one), bright(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

describe("the cells of the heat map of ranks", () => {
  it.each(THEMES)("can be read: %s", (_, theme) => {
    for (const level of LEVELS) {
      const text = said(`.rankmap .cells .level${level}`, "color") ?? said(".rankmap .cells button", "color") ?? "that of the editor's buttons";
      const shade = said(`.rankmap .level${level}`, "background") ?? "";
      expect(contrast(onPage(text, theme), onPage(shade, theme)), `level ${level}`).toBeGreaterThanOrEqual(4.5);
    }
  });

  it("are there where a theme has no colour to hover with", () => {
    expect(said(".rankmap .cells .level0", "border-color")).toBe("var(--border)");
  });
});

describe("what colours say of ranks", () => {
  it("is kept where the system has colours of its own", () => {
    const [, kept = ""] = CSS.split("@media (forced-colors: active) {");
    const [selectors = "", said = ""] = kept.split("{");
    expect(said).toContain("forced-color-adjust: none");
    expect(selectors.split(",").map((one) => one.trim())).toEqual([".rankmap .cells button", ".rankmap .swatch", ".rankbars .swatch", ".rankbars .bar span", ".heat"]);
  });
});

describe("what closes a rank", () => {
  it("has a colour of the page, for it has no background of a button", () => {
    expect(said(".rankdetails .close", "background")).toBe("none");
    expect(said(".rankdetails .close", "color")).toBe("var(--muted)");
  });
});
