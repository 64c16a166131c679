import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openPages, type Pages } from "./support/pages";
import { hottestOf, PROGRAM, report, traces, type Report } from "./support/recorded";
import { OUTPUT } from "./support/surroundings";

interface Head {
  readonly endNs: number;
  readonly slices: number;
  readonly places: readonly { readonly file: string; readonly line: number; readonly title: string }[];
}

interface Matches {
  readonly count: number;
  readonly found: readonly { readonly slice: number; readonly name: string; readonly track: number; readonly startNs: number; readonly endNs: number }[];
}

interface Sums {
  readonly lines: readonly { readonly place: number; readonly timeNs: number }[];
  readonly operators: readonly { readonly name: string; readonly timeNs: number }[];
}

describe("the timeline", () => {
  let pages: Pages;
  let page: Page;
  let recorded: Report;
  let head: Head;

  /** What the server says by itself. */
  const asked = async <T>(question: string): Promise<T> => {
    const { origin, searchParams } = new URL(pages.url);
    const reply = await fetch(`${origin}/api/${question}`, { headers: { "X-DeepScope-Token": searchParams.get("token") ?? "" } });
    expect(reply.status).toBe(200);
    return (await reply.json()) as T;
  };
  const words = (): URLSearchParams => new URLSearchParams(page.url().split("?").at(-1));
  const shown = async (hash: string): Promise<void> => {
    await pages.show(hash);
    await page.locator(".stage .lanes").waitFor();
  };
  /** The span that is seen, as the address tells once it has come to rest. */
  const span = (): number => Number(words().get("to") ?? head.endNs) - Number(words().get("from") ?? 0);
  /** How many of a canvas's pixels differ from its first one. */
  const painted = (): Promise<number> =>
    page
      .locator("canvas.base")
      .first()
      .evaluate((canvas: HTMLCanvasElement) => {
        const pixels = new Uint32Array(canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data.buffer ?? new ArrayBuffer(4));
        return pixels.filter((pixel) => pixel !== pixels[pixels.length - 1]).length;
      });

  beforeAll(async () => {
    const [trace] = traces(inject("project"));
    recorded = report(trace!);
    pages = await openPages([trace!]);
    page = pages.page;
    await shown("timeline");
    head = await asked<Head>("timeline");
  });
  afterAll(async () => pages.close());

  it("shows tracks with slices", async () => {
    await expect.poll(painted).toBeGreaterThan(20_000);
    expect(await page.locator(".lanetitle").first().textContent()).toContain("steps");
    expect(await page.locator(".lanetitle").allTextContents()).toContainEqual(expect.stringContaining("trains"));
    await page.screenshot({ path: join(OUTPUT, "pages-timeline.png") });
  });

  it("zooms and moves by keys and by the wheel, and the address holds what is seen", async () => {
    await page.locator(".stage .lanes").focus();
    await page.keyboard.press("w");
    await expect.poll(span).toBeLessThan(head.endNs * 0.7);
    const zoomed = span();
    await page.keyboard.press("d");
    await expect.poll(() => Number(words().get("from"))).toBeGreaterThan(0);
    expect(span()).toBeCloseTo(zoomed, -2);
    const box = (await page.locator("canvas.base").first().boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.mouse.wheel(0, -400);
    await expect.poll(span).toBeLessThan(zoomed * 0.6);
    await page.keyboard.press("0");
    await expect.poll(span).toBe(head.endNs);
  });

  it("finds the slices of a line that is asked for, and tells all of the first", async () => {
    const { file, line } = hottestOf(recorded);
    const matches = await asked<Matches>(`timeline_line?${new URLSearchParams({ file, line: String(line) }).toString()}`);
    expect(matches.count).toBeGreaterThan(0);
    await shown(`timeline?${new URLSearchParams({ file, line: String(line) }).toString()}`);
    await expect.poll(() => words().get("slice")).toBe(String(matches.found[0]!.slice));
    await expect.poll(() => page.locator(".finder output").textContent()).toContain(`1 of ${matches.count.toLocaleString("en")}`);
    await expect.poll(() => page.locator(".linestack .place").first().textContent()).toContain(`${PROGRAM}:${line}`);
    await page.keyboard.press("n");
    await expect.poll(() => words().get("slice")).toBe(String(matches.found[1]!.slice));
    await page.screenshot({ path: join(OUTPUT, "pages-timeline-line.png") });
  });

  it("leads from a slice to its code", async () => {
    const place = page.locator(".linestack .place").first();
    const { file, line } = hottestOf(recorded);
    const target = new URLSearchParams((await place.getAttribute("href"))!.split("?").at(-1));
    expect([target.get("file"), target.get("line")]).toEqual([file, String(line)]);
  });

  it("shows a slice that is clicked, and what is around it by key", async () => {
    const { found } = await asked<Matches>("timeline_search?text=aten%3A%3Aaddmm&limit=1");
    const [first] = found;
    await shown(`timeline?from=${first!.startNs}&to=${first!.endNs}&slice=${first!.slice}`);
    await expect.poll(() => page.locator(".details .name").textContent()).toContain("aten::addmm");
    await page.locator(".stage .lanes").focus();
    await expect
      .poll(async () => {
        await page.keyboard.press("["); // does nothing until what is around has come from the server
        return words().get("slice");
      })
      .not.toBe(String(first!.slice));
    // The steps fill the first rows wherever one looks.
    const box = (await page.locator("canvas.base").first().boundingBox())!;
    await page.locator(".lanes").evaluate((lanes) => lanes.scrollTo(0, 0));
    await page.mouse.click(box.x + box.width / 2, box.y + 9);
    await expect.poll(() => page.locator(".details .name").textContent()).toMatch(/ProfilerStep#\d/);
  });

  it("searches names, and goes from one found slice to the next", async () => {
    const { count, found } = await asked<Matches>("timeline_search?text=addmm&limit=1000");
    await shown("timeline");
    await page.keyboard.press("/");
    await page.keyboard.type("addmm");
    await expect.poll(() => page.locator(".finder output").textContent()).toContain(count.toLocaleString("en"));
    await page.keyboard.press("Enter");
    await expect.poll(() => words().get("slice")).toBe(String(found[0]!.slice));
    await page.keyboard.press("Enter");
    await expect.poll(() => words().get("slice")).toBe(String(found[1]!.slice));
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await expect.poll(() => words().get("find")).toBeNull();
  });

  it("sums up a marked stretch as the server does, and the whole as the report", async () => {
    await shown("timeline");
    const box = (await page.locator("canvas.base").first().boundingBox())!;
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 0.3 * box.width, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 80);
    await page.mouse.move(box.x + 0.7 * box.width, box.y + 80);
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await expect.poll(() => words().get("mark")).toMatch(/^\d+-\d+$/);
    const [begin = "", end = ""] = (words().get("mark") ?? "").split("-");
    const sums = await asked<Sums>(`timeline_selection?begin=${begin}&end=${end}`);
    const row = page.locator(".sums section").first().locator("tr").first();
    await expect.poll(() => row.textContent()).toContain(head.places[sums.lines[0]!.place]?.title ?? "no line");
    expect(await row.getAttribute("title")).toContain(exact(sums.lines[0]!.timeNs));
    await page.screenshot({ path: join(OUTPUT, "pages-timeline-stretch.png") });

    const whole = await asked<Sums>(`timeline_selection?begin=0&end=${head.endNs}`);
    const { line, file, self_device_ns: own } = recorded.lines.reduce((best, one) => (one.self_device_ns > best.self_device_ns ? one : best));
    const ofLine = whole.lines.filter(({ place }) => head.places[place]?.line === line && head.places[place].file === file);
    expect(ofLine.reduce((sum, { timeNs }) => sum + timeNs, 0)).toBe(own);
    await page.keyboard.press("Escape");
    await expect.poll(() => words().get("mark")).toBeNull();
  });

  it("goes back to what was seen before a jump", async () => {
    const { found } = await asked<Matches>("timeline_search?text=aten%3A%3Aaddmm&limit=1");
    await shown(`timeline?slice=${found[0]!.slice}`);
    const { longest } = await asked<{ longest: { slice: number }[] }>("timeline_durations?name=aten%3A%3Aaddmm&kind=operator");
    const at = longest.findIndex(({ slice }) => slice !== found[0]!.slice);
    await page.locator(".longest .link").nth(at).click();
    await expect.poll(() => words().get("slice")).toBe(String(longest[at]!.slice));
    await page.goBack();
    await expect.poll(() => [words().get("slice"), words().get("from")]).toEqual([String(found[0]!.slice), null]);
  });

  it("explains its keys, and fits a narrow page", async () => {
    await page.keyboard.press("?");
    expect(await page.locator("dialog .keys dt").count()).toBeGreaterThan(10);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 380, height: 800 });
    await expect.poll(() => page.locator(".stage.narrow").count()).toBe(1);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(380);
    await page.locator("#timeline-search").fill("aten");
    const found = page.locator(".finder output", { hasText: "·" });
    await found.waitFor();
    expect((await found.boundingBox())!.x + (await found.boundingBox())!.width).toBeLessThanOrEqual(380);
    await page.screenshot({ path: join(OUTPUT, "pages-timeline-narrow.png") });
  });

  it("asks nobody else for anything, and nothing fails", () => {
    expect(pages.said).toEqual([]);
  });
});

/** A time with all its digits, as the page has it. */
function exact(ns: number): string {
  const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const rest = String(ns % size).padStart(String(size).length - 1, "0").replace(/(\d{3})(?=\d)/g, "$1\u2009");
  return `${Math.floor(ns / size)}${size === 1 ? "" : `.${rest}`} ${unit}`;
}
