import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { doctor } from "./support/doctored";
import { copyProject, PROGRAM, report, scratch, TRACES, traces, type Report } from "./support/recorded";
import { Workbench } from "./support/workbench";

const MARK = "/tmp/deepscope-e2e-was-here";
const NAMES = [
  `<img src=x onerror="document.title='owned'">`,
  `[run](command:workbench.action.terminal.sendSequence?%7B%22text%22%3A%22touch%20${MARK}%5Cn%22%7D)`,
  "![i](https://example.invalid/beacon.png)",
  "$(trash) `code` **bold** <script>document.title='owned'</script>",
  `"; touch ${MARK}; "`,
];
/** What the trace says its lines are in. */
const FILES = ["../../../../../../etc/passwd", "/etc/hostname", "[link](command:workbench.action.toggleSidebarVisibility)", "PROJECT/../../../etc/hosts"];

describe("a trace made to attack the reader", () => {
  const own = scratch();
  const project = join(own.path, "hostile");
  const asked: string[] = [];
  let bench: Workbench;
  let recorded: Report;

  beforeAll(async () => {
    copyProject(inject("project"), project);
    const [trace] = traces(project);
    const program = join(project, PROGRAM);
    const byTime = [...report(trace!).lines].sort((one, other) => other.self_device_ns - one.self_device_ns);
    const lines = byTime.slice(1, 1 + FILES.length).map((line) => line.line);
    doctor(trace!, (header) => {
      header.project_root = project;
      header.hostname = NAMES[0]!;
      header.device.name = NAMES[0]!;
      header.metadata = { note: NAMES[1] };
      header.files[0]!.path = program;
      const own = header.files.length;
      header.files.push(...FILES.map((path) => ({ path: path.replace("PROJECT", project) })));
      for (const [index, scope] of header.scopes.entries()) {
        if (scope[0] !== 0 || scope[1] !== 0) {
          continue;
        }
        // Hostile names for all, and for one line each a file of those above.
        scope[3] = NAMES[index % NAMES.length]!;
        const file = lines.indexOf(scope[2]);
        scope[1] = file >= 0 && file < FILES.length ? own + file : 0;
      }
    });
    recorded = report(join(project, TRACES));
    bench = await Workbench.open({ folder: project, extensions: inject("extensions") });
    bench.page.on("request", (request) => {
      asked.push(request.url());
    });
    await bench.openFile(PROGRAM);
    await bench.traceShown();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("is read as it stands", () => {
    expect(recorded.lines.some((line) => NAMES.includes(line.function))).toBe(true);
    expect(recorded.lines.some((line) => line.file.endsWith("etc/passwd"))).toBe(true);
  });

  it("puts no link, image or command into a hover but the editor's own", async () => {
    const hot = recorded.lines.find((line) => line.file.endsWith(PROGRAM) && line.self_device_ns > 0);
    await bench.goToLine(hot!.line);
    await bench.page.locator(".editor-instance .view-line .mtk1, .editor-instance .current-line ~ *").first().waitFor({ state: "attached" });
    const hover = bench.page.locator(".monaco-hover:visible").filter({ hasText: "CPU" });
    await bench.showHover(hover.first());
    await bench.screenshot("hostile-hover");
    expect(await hover.locator("img, script").count()).toBe(0);
    const links = await hover.locator("a").evaluateAll((found) => found.map((link) => `${link.getAttribute("href") ?? ""} ${link.getAttribute("data-href") ?? ""}`));
    // Made by the extension of the file that is open, not of a name in the trace.
    const place = [{ uri: pathToFileURL(join(project, PROGRAM)).href, line: hot!.line }];
    const own = ["deepscope.showInDashboard", "deepscope.showInTimeline"].map((command) => ` command:${command}?${encodeURIComponent(JSON.stringify(place))}`);
    expect(links.filter((link) => /command:|https?:|javascript:/.test(link))).toEqual(own);
    await bench.page.keyboard.press("Escape");
  });

  it("shows its names as text in the views and the flame graph", async () => {
    await bench.showDeepScope();
    await bench.rows("Hot Lines").first().waitFor();
    await bench.run("DeepScope: Show in Flame Graph");
    const graph = bench.webview();
    await graph.locator("g.frame").nth(3).waitFor();
    await bench.screenshot("hostile-flame");
    expect(await graph.locator("img, g.frame script, g.frame a").count()).toBe(0);
    const links = await graph.locator("a").evaluateAll((found) => found.map((link) => link.getAttribute("href") ?? ""));
    expect(links.filter((link) => !link.startsWith("#"))).toEqual([]);
  });

  it("opens no file outside the workspace without asking, and makes no link of its name", async () => {
    for (const name of ["passwd", "hostname", "hosts", "[link]"]) {
      const row = bench.rows("Hot Lines").filter({ hasText: name }).first();
      await row.click();
      const dialog = bench.page.locator(".monaco-dialog-box");
      const notFound = bench.notification("was not found here");
      await dialog.or(notFound).first().waitFor();
      await bench.screenshot(`hostile-${name.replace(/\W/g, "")}`);
      if (await dialog.isVisible()) {
        await bench.page.keyboard.press("Escape");
        await dialog.waitFor({ state: "hidden" });
      }
      expect(await bench.page.locator(".tab").filter({ hasText: name }).count()).toBe(0);
      expect(await bench.page.locator(".notification-toast .notification-list-item-message a").count()).toBe(0);
      await bench.run("Notifications: Clear All Notifications");
      await expect.poll(() => bench.page.locator(".notification-toast").count()).toBe(0); // the next one is the next row's
    }
  });

  it("has run nothing and asked nothing of the network", async () => {
    expect(existsSync(MARK)).toBe(false);
    expect(await bench.page.title()).not.toContain("owned");
    expect(await bench.page.locator(".terminal-wrapper").count()).toBe(0);
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((url) => url.includes("example.invalid"))).toEqual([]);
  });
});
