import { execFileSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { doctorWhole } from "./support/doctored";
import { openPages, type Pages } from "./support/pages";
import { scratch, traces } from "./support/recorded";
import { OUTPUT, PYTHON } from "./support/surroundings";

const NAMES = [
  "<img src=https://example.invalid/x onerror=\"document.title='owned'\">",
  "</script><script>document.title='owned'</script>",
  "javascript:document.title='owned'",
  "data:text/html,<script>document.title='owned'</script>",
  "[link](javascript:document.title='owned') ![i](https://example.invalid/beacon.png)",
  "\u202egnp.exe\u0000\u001b[2J\u2028\u200b",
  "__proto__",
  "constructor",
  `${"long ".repeat(2000)}`,
  "\"'`${document.title='owned'}{{constructor.constructor('alert(1)')()}}",
];
const FILES = [`/tmp/"><svg onload=document.title='owned'>.py`, "javascript:alert(1)//.py", "/tmp/__proto__", "//example.invalid/share/x.py", "https://example.invalid/y.py"];

/** A trace made to attack the reader, on every page behind both doors. */
describe("the pages of a hostile trace", () => {
  const own = scratch();
  let pages: Pages;
  let file: string;

  beforeAll(async () => {
    const trace = join(own.path, "hostile.pt.trace.json.gz");
    copyFileSync(traces(inject("project"))[0]!, trace);
    doctorWhole(trace, (whole) => {
      const { deepscope: header } = whole;
      header.hostname = NAMES[0]!;
      header.project_root = NAMES[1]!;
      header.device.name = NAMES[0]!;
      header.metadata = JSON.parse(`{"__proto__": "owned", "note": ${JSON.stringify(NAMES[2])}}`) as Record<string, unknown>;
      header.files = header.files.map(({ path, ...rest }, index) => ({ ...rest, path: index === 0 ? FILES[0]! : (FILES[index % FILES.length] ?? path) }));
      for (const [index, scope] of header.scopes.entries()) {
        scope[3] = NAMES[index % NAMES.length]!;
        scope[5] = NAMES[(index + 3) % NAMES.length]!;
      }
      for (const [index, event] of whole.traceEvents.entries()) {
        if (event.cat === "cpu_op" && event.name?.startsWith("aten::") === true) {
          event.name = `${event.name.slice(0, 12)} ${NAMES[index % NAMES.length]!}`;
        }
      }
    });
    file = join(own.path, "hostile.html");
    execFileSync(PYTHON, ["-m", "deepscope", "export", "--format", "html", trace, "-o", file]);
    pages = await openPages([trace]);
  });
  afterAll(async () => {
    await pages.close();
    own.remove();
  });

  const judge = async (name: string): Promise<void> => {
    const found = await pages.page.evaluate(() => ({
      title: document.title,
      foreign: [...document.querySelectorAll("body script, body img, body iframe, body object, body embed, body form, body base, body link")].filter(
        (one) => !(one instanceof HTMLScriptElement),
      ).length,
      handlers: [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames().filter((attribute) => attribute.startsWith("on"))),
      links: [...document.querySelectorAll("[href], [src]")].map((one) => one.getAttribute("href") ?? one.getAttribute("src") ?? ""),
      width: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    }));
    expect(found.title, name).not.toMatch(/^owned/);
    expect(found.foreign, name).toBe(0);
    expect(found.handlers, name).toEqual([]);
    expect(found.links.filter((link) => !/^(#\/|#main$|vscode:\/\/file\/|dashboard\.(css|js)$|data:image\/svg\+xml,)/.test(link)), name).toEqual([]);
    expect(found.width, name).toBeLessThanOrEqual(0);
    expect(await pages.page.locator(".failure h3", { hasText: "This page failed" }).count(), name).toBe(0);
  };

  const everyPage = async (door: string): Promise<void> => {
    const links = pages.page.locator("nav.pages a");
    await links.first().waitFor();
    const count = await links.count();
    expect(count).toBeGreaterThanOrEqual(6);
    for (let number = 0; number < count; number++) {
      const link = links.nth(number);
      const title = (await link.textContent()) ?? "";
      await link.click();
      await expect.poll(() => pages.page.locator("main h1").textContent()).toBe(title);
      await pages.page.locator(".waiting").waitFor({ state: "detached" });
      await pages.page.screenshot({ path: join(OUTPUT, `hostile-${door}-${title.replace(/\W/g, "")}.png`) });
      await judge(`${door}: ${title}`);
    }
  };

  it("runs nothing and links nowhere behind deepscope view", async () => everyPage("view"));

  it("asks nobody else for anything", () => {
    expect(pages.said).toEqual([]);
  });

  it("runs nothing and links nowhere as a file", async () => {
    await pages.page.goto(pathToFileURL(file).href);
    await everyPage("file");
    expect(pages.said.filter((line) => !line.includes(pathToFileURL(file).href))).toEqual([]);
  });
});
