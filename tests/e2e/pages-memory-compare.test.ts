import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPages, type Pages } from "./support/pages";
import { report, scratch, traces } from "./support/recorded";
import { OUTPUT, PYTHON } from "./support/surroundings";

const TRAIN = `import os
import torch
from torch import nn

slow = "SLOW" in os.environ  # other arguments would be another program
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.AdamW(net.parameters())
for step in range(7):
    x = torch.randn(256, 64)
    loss = net(x).square().mean()
    if slow:
        loss = loss + torch.linalg.inv(torch.eye(200) * 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
`;
/** Rank 1 computes ten times as much before each backward pass, in which gradients are exchanged. */
const RANKS = `import gc

import torch
import torch.distributed as dist
from torch import nn

import deepscope

dist.init_process_group("gloo")
torch.set_num_threads(1)
times = 120 if dist.get_rank() == 1 else 4
net = nn.parallel.DistributedDataParallel(nn.Linear(128, 128))
with deepscope.profile(folder="deepscope_logs", wait=1, warmup=1, active=4) as profiler:
    for step in range(6):
        x = torch.randn(256, 256)
        for _ in range(times):
            x = torch.tanh(x @ x)
        net(x[:, :128]).square().mean().backward()
        profiler.step()
del net
gc.collect()  # with the process group still held, its threads outlive Python, which aborts
dist.destroy_process_group()
`;

const own = scratch();
const [runs, ranks] = [join(own.path, "runs"), join(own.path, "ranks")];

async function python(folder: string, args: string[], environment: Record<string, string> = {}): Promise<void> {
  await promisify(execFile)(PYTHON, args, { cwd: folder, env: { ...process.env, ...environment } });
}

beforeAll(async () => {
  for (const [folder, name, text] of [
    [runs, "train.py", TRAIN],
    [ranks, "ranks.py", RANKS],
  ] as const) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, "pyproject.toml"), "");
  }
  const recorded = ["-m", "deepscope", "run", "--topics", "default,memory", "--active", "5", "train.py"];
  await python(runs, recorded);
  await python(runs, recorded, { SLOW: "1" });
  await python(ranks, ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ranks.py"]);
});
afterAll(() => own.remove());

describe("the page of memory", () => {
  let pages: Pages;
  const title = async (): Promise<string> => (await pages.page.locator(".moment h2").textContent()) ?? "";

  beforeAll(async () => {
    pages = await openPages([runs]);
    await pages.show("memory");
  });
  afterAll(async () => pages.close());

  it("has the peak, and what it was by kind and line", async () => {
    await pages.page.screenshot({ path: join(OUTPUT, "pages-memory.png"), fullPage: true });
    expect(await title()).toMatch(/^Live at the peak, .*: [\d.]+ [KM]iB$/);
    for (const kind of ["parameters", "gradients", "optimizer state", "activations"]) {
      expect(await pages.page.locator(".moment .legend").textContent()).toContain(kind);
    }
    await pages.page.locator(".moment [role=grid] a.place").filter({ hasText: "train.py:" }).first().waitFor();
  });

  it("tells what was live where the cursor is, keeps it at a click, and goes back", async () => {
    const { page } = pages;
    const box = (await page.locator(".u-over").boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
    await expect.poll(title).toMatch(/^Live at [\d.]+ (ms|µs): /);
    await page.mouse.click(box.x + box.width * 0.3, box.y + 50);
    await expect.poll(() => page.url()).toMatch(/[?&]at=\d+/);
    await page.mouse.move(box.x, box.y + box.height + 400);
    await page.getByRole("button", { name: "Back to the peak" }).click();
    await expect.poll(title).toContain("Live at the peak");
    await page.getByRole("button", { name: "Modules" }).click();
    await expect.poll(() => page.locator(".moment [role=columnheader]").first().textContent()).toContain("module");
  });

  it("zooms where it is dragged, by keys too, and shows all again", async () => {
    const { page } = pages;
    const box = (await page.locator(".u-over").boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.2, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.getByRole("button", { name: "Show all" }).waitFor();
    await page.locator(".plot").press("Escape");
    await page.getByRole("button", { name: "Show all" }).waitFor({ state: "detached" });
    await page.locator(".plot").press("ArrowRight");
    await expect.poll(() => page.locator(".plot").getAttribute("aria-label")).toMatch(/allocated [\d.]+ [KM]iB/);
  });

  it("fits into a narrow panel", async () => {
    await pages.page.setViewportSize({ width: 360, height: 800 });
    await pages.page.screenshot({ path: join(OUTPUT, "pages-memory-narrow.png") });
    expect(await pages.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    expect(pages.said).toEqual([]);
  });
});

describe("the page of comparisons", () => {
  let pages: Pages;

  beforeAll(async () => {
    pages = await openPages([runs]);
    await pages.show("compare");
  });
  afterAll(async () => pages.close());

  it("shows the line that is new, and what is within noise when it is asked to", async () => {
    const { page } = pages;
    const rows = page.locator("[role=grid] [role=row]");
    await page.locator(".choices input").check();
    await expect.poll(() => page.url()).toContain("noise=1");
    await page.screenshot({ path: join(OUTPUT, "pages-compare.png"), fullPage: true });
    await rows.filter({ hasText: "train.py:12" }).first().waitFor();
    const all = await rows.count();
    await page.locator(".choices input").uncheck();
    await expect.poll(() => page.locator("[role=grid] .verdict.noise").count()).toBe(0);
    expect(all).toBeGreaterThan(3);
  });

  it("compares with a run that is picked, and the other way round", async () => {
    const { page } = pages;
    const picker = page.getByLabel("Baseline");
    const [, older] = await picker.locator("option").evaluateAll((options) => options.map((one) => (one as HTMLOptionElement).value));
    await picker.selectOption(older!);
    await expect.poll(() => page.url()).toContain(`baseline=${older!}`);
    const before = await page.locator(".stepchange dd").allTextContents();
    await page.getByRole("button", { name: "Swap" }).click();
    await expect.poll(() => page.locator(".stepchange dd").first().textContent()).toBe(before[1]);
    await page.goBack();
    await expect.poll(() => page.locator(".stepchange dd").first().textContent()).toBe(before[0]);
    await page.getByRole("button", { name: "Operators" }).click();
    await expect.poll(() => page.url()).toContain("by=operator");
    expect(pages.said).toEqual([]);
  });

  it("says how to get a second run where there is one", async () => {
    const single = await openPages([traces(runs)[0]!]);
    try {
      await single.show("compare");
      expect(await single.page.locator("main").textContent()).toContain("Record the program again");
    } finally {
      await single.close();
    }
  });
});

describe("the page of ranks", () => {
  let pages: Pages;

  beforeAll(async () => {
    pages = await openPages([ranks]);
    await pages.show("distributed");
  });
  afterAll(async () => pages.close());

  it("names the rank that is late, and the line that makes it so", async () => {
    await pages.page.screenshot({ path: join(OUTPUT, "pages-distributed.png"), fullPage: true });
    expect(await pages.page.locator(".lead").textContent()).toContain("Rank 1 holds the others up");
    expect(await pages.page.locator(".finding .place").first().textContent()).toBe("ranks.py:17");
    expect(await pages.page.locator(".rankbars ol li").count()).toBe(2);
    expect(await pages.page.locator("main").textContent()).toContain("all_reduce");
  });

  it("leads to one rank alone, whose numbers are its own report's", async () => {
    const { page } = pages;
    await page.locator(".rankbars a", { hasText: "rank 1" }).click();
    await expect.poll(() => page.locator(".rankdetails h2").textContent()).toBe("Rank 1");
    await expect.poll(() => page.locator(".ranknumbers").count()).toBe(2);
    await page.locator(".rankdetails a", { hasText: "Show it alone" }).click();
    await expect.poll(() => page.url()).toContain("rank=1");
    const [one] = traces(ranks).filter((trace) => trace.includes("rank1"));
    expect(report(one!).totals.steps).toBe(4);
    await page.goBack();
    await expect.poll(() => page.locator(".rankbars ol li").count()).toBe(2);
    expect(pages.said).toEqual([]);
  });

  it("has a cell for each rank, which the keyboard reaches and opens", async () => {
    const { page } = pages;
    await pages.show("distributed");
    const cells = page.locator(".rankmap").getByRole("option");
    await expect.poll(() => cells.count()).toBe(2);
    expect(await cells.nth(1).getAttribute("aria-label")).toMatch(/^rank 1: [\d.]+ ms, \+\d+ %/);
    await cells.nth(0).focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".rankdetails h2").textContent()).toBe("Rank 1");
    expect(await cells.nth(1).getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".rankdetails").count()).toBe(0);
  });
});
