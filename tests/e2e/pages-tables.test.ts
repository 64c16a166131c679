import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openPages, type Pages } from "./support/pages";
import { traces } from "./support/recorded";
import { OUTPUT, PYTHON, REPOSITORY } from "./support/surroundings";

interface Row {
  readonly name: string;
  readonly label: string;
  readonly self_device_ns: number;
  readonly calls: number;
}

interface Operators {
  readonly operators: readonly Row[];
}

function operatorsOf(path: string): readonly Row[] {
  const words = execFileSync(PYTHON, ["-m", "deepscope", "report", path, "--format", "json", "--by", "operator", "-n", "0"], { encoding: "utf8", maxBuffer: 1e9 });
  return (JSON.parse(words) as Operators).operators;
}

describe("the tables of the dashboard", () => {
  let pages: Pages;
  let operators: readonly Row[];

  beforeAll(async () => {
    const [trace] = traces(inject("project"));
    if (trace === undefined) {
      throw new Error("nothing was recorded");
    }
    operators = operatorsOf(trace);
    pages = await openPages([trace]);
  });
  afterAll(async () => pages.close());

  const names = async (): Promise<string[]> => pages.page.locator(".datatable tbody th .text").allTextContents();
  const address = (): URLSearchParams => new URLSearchParams(pages.page.url().split("?").at(-1));
  const picture = async (name: string): Promise<void> => {
    await pages.page.screenshot({ path: join(OUTPUT, `pages-${name}.png`) });
  };

  it("have the report's operators in the report's order", async () => {
    await pages.show("operators");
    await expect.poll(async () => (await names()).slice(0, 10)).toEqual(operators.slice(0, 10).map(({ label }) => label));
    await picture("operators");
    expect(await pages.page.locator(".datatable .foot").textContent()).toContain(`${operators.length} rows`);
  });

  it("are sorted by the head, the first way round, the other, and by several with shift; the address says so", async () => {
    const calls = pages.page.getByRole("columnheader", { name: "calls" });
    await calls.getByRole("button").click();
    await expect.poll(() => calls.getAttribute("aria-sort")).toBe("descending");
    expect(address().get("sort")).toBe("-calls");
    const most = Math.max(...operators.map((one) => one.calls));
    const [first] = await names();
    expect(operators.find(({ label }) => label === first)?.calls).toBe(most);
    await calls.getByRole("button").press("Enter");
    await expect.poll(() => calls.getAttribute("aria-sort")).toBe("ascending");
    await pages.page.getByRole("columnheader", { name: "operator" }).getByRole("button").click({ modifiers: ["Shift"] });
    await expect.poll(() => address().get("sort")).toBe("calls,label");
  });

  it("choose columns, which the browser keeps, and filter by words", async () => {
    await pages.show("operators?where=type:matmul");
    await expect.poll(names).toContain("aten::mm");
    expect(await names()).not.toContain("aten::gelu");
    await pages.page.getByRole("button", { name: /^Columns/ }).click();
    await pages.page.getByRole("checkbox", { name: "share" }).uncheck();
    await pages.page.keyboard.press("Escape");
    await pages.page.reload();
    await expect.poll(names).toContain("aten::mm");
    expect(await pages.page.getByRole("columnheader", { name: "share" }).count()).toBe(0);
    await pages.page.evaluate(() => window.localStorage.clear());
  });

  it("find rows and keep them in the address", async () => {
    await pages.show("operators?find=addmm");
    await expect.poll(names).toEqual(operators.filter(({ label }) => label.toLowerCase().includes("addmm")).map(({ label }) => label));
    await pages.page.getByRole("searchbox").fill("nothing is called so");
    await expect.poll(names).toEqual([]);
    expect(address().get("find")).toBe("nothing is called so");
  });

  it("tell more of a row that is chosen by the keyboard, down to the lines that run it", async () => {
    await pages.show("operators");
    await pages.page.locator(".datatable .grid").focus();
    await pages.page.keyboard.press("Enter");
    const details = pages.page.locator(".rowdetails");
    await expect.poll(() => details.locator("h2").textContent()).toBe(operators[0]?.label);
    await expect.poll(() => details.locator(".timebars .place").count()).toBeGreaterThan(0);
    await expect.poll(() => details.locator(".histogram .bin").count()).toBeGreaterThan(0);
    await pages.page.keyboard.press("ArrowDown");
    await expect.poll(() => details.locator("h2").textContent()).toBe(operators[1]?.label);
    await picture("operator");
    await pages.page.keyboard.press("Escape");
    await expect.poll(() => details.count()).toBe(0);
  });

  it("have operators by stacks and by kind, and say where there are no shapes", async () => {
    await pages.show("operators?by=stacks");
    await pages.page.getByRole("columnheader", { name: "called from" }).waitFor();
    await pages.show("operators?by=shapes");
    await pages.page.getByText("The trace has no shapes").waitFor();
    await pages.show("operators?by=type");
    await expect.poll(names).toContain("matmul");
  });

  it("have the modules as a tree that arrow keys open and close", async () => {
    await pages.show("modules");
    await expect.poll(names).toContainEqual(expect.stringMatching(/×\d+$/));
    await picture("modules");
    const rows = pages.page.locator(".datatable tbody tr[role=row]");
    const before = await rows.count();
    await pages.page.locator(".datatable .grid").focus();
    await pages.page.keyboard.press("ArrowLeft");
    await expect.poll(() => rows.count()).toBeLessThan(before);
    await pages.page.keyboard.press("ArrowRight");
    await expect.poll(() => rows.count()).toBe(before);
  });

  it("have the steps; a click shows one alone", async () => {
    await pages.show("steps");
    await pages.page.locator(".steps .step").first().waitFor();
    await picture("steps");
    await pages.page.locator(".steps .step").first().click();
    await expect.poll(() => address().get("step")).not.toBeNull();
    await expect.poll(() => pages.page.getByText("Only step").count()).toBe(1);
    await pages.page.goBack();
    await expect.poll(() => pages.page.getByText("Only step").count()).toBe(0);
  });

  it("fit a narrow panel", async () => {
    await pages.page.setViewportSize({ width: 380, height: 800 });
    for (const page of ["operators", "modules", "steps", "findings", "overview"]) {
      await pages.show(page);
      const [wide, seen] = await pages.page.evaluate(() => [document.body.scrollWidth, window.innerWidth]);
      expect(wide).toBeLessThanOrEqual(seen ?? 0);
      const main = await pages.page.locator("main").evaluate((element) => [element.scrollWidth, element.clientWidth]);
      expect(main[0], page).toBeLessThanOrEqual(main[1] ?? 0);
    }
  });

  it("ask nobody else for anything, and nothing fails", () => {
    expect(pages.said).toEqual([]);
  });
});

describe("the tables of a run on a device", () => {
  let pages: Pages;

  beforeAll(async () => {
    pages = await openPages([join(REPOSITORY, "tests/data/traces/grafted-device.json.gz")]);
  });
  afterAll(async () => pages.close());

  it("have its kernels, each with the operator and the lines that launch it", async () => {
    await pages.show("kernels");
    await pages.page.locator(".datatable tbody tr[role=row]").first().click();
    const details = pages.page.locator(".rowdetails");
    await expect.poll(() => details.locator(".timebars .place").count()).toBeGreaterThan(0);
    await details.getByRole("link").first().click();
    await expect.poll(() => pages.page.locator("main h1").textContent()).toBe("Operators");
    await expect.poll(() => details.locator("h2").count()).toBe(1);
  });

  it("stand beside advice by code, which the page in the package explains", async () => {
    await pages.show("findings?code=DS004");
    const codes = pages.page.locator(".finding .code");
    await expect.poll(async () => [...new Set(await codes.allTextContents())]).toEqual(["DS004"]);
    await pages.page.locator("details.explained summary").first().click();
    await expect.poll(() => pages.page.locator(".prose h3").first().textContent()).toMatch(/^DS004: /);
    await pages.page.screenshot({ path: join(OUTPUT, "pages-findings.png") });
  });

  it("ask nobody else for anything, and nothing fails", () => {
    expect(pages.said).toEqual([]);
  });
});
