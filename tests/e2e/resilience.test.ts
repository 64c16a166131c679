import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { hottestOf, PROGRAM, report, scratch, TRACES } from "./support/recorded";
import { PYTHON } from "./support/surroundings";
import { Workbench } from "./support/workbench";

describe("the language server", () => {
  let bench: Workbench;

  beforeAll(async () => {
    bench = await Workbench.openProgram({ folder: inject("project"), extensions: inject("extensions") });
  });
  afterAll(() => bench.close());

  it("is back after it was killed, with its numbers", async () => {
    const [before] = bench.editor.processes("deepscope_lsp");
    process.kill(before!, "SIGKILL");
    await expect.poll(() => bench.editor.processes("deepscope_lsp").filter((pid) => pid !== before).length).toBe(1);
    await bench.traceShown();
    const hottest = hottestOf(report(join(inject("project"), TRACES)));
    const code = readFileSync(join(inject("project"), PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    expect(await bench.hint(code)).toContain("%");
    await expect.poll(() => bench.editor.extensionLog()).toContain("starting it again");
  });

  it("is given up when it keeps dying, with one message and its logs", async () => {
    const gone = new Set<number>();
    const message = bench.notification(/language server stopped \d times/);
    await expect
      .poll(async () => {
        for (const pid of bench.editor.processes("deepscope_lsp")) {
          if (!gone.has(pid)) {
            gone.add(pid);
            process.kill(pid, "SIGKILL");
          }
        }
        return message.count();
      })
      .toBe(1);
    await bench.screenshot("gave-up");
    expect(await bench.notification("DeepScope").count()).toBe(1);
    await message.getByRole("button", { name: "Show Logs" }).click();
    await bench.page.locator(".pane-body.output-view, .output-view").first().waitFor();
  });
});

describe("the extension", () => {
  let bench: Workbench | undefined;
  afterEach(async () => {
    await bench?.close();
    bench = undefined;
  });

  it("offers to install where the interpreter has no DeepScope, and installs nothing unasked", async () => {
    const own = scratch();
    try {
      execFileSync(PYTHON, ["-m", "venv", "--without-pip", join(own.path, "bare")]);
      const python = join(own.path, "bare", "bin", "python");
      bench = await Workbench.open({ folder: inject("project"), extensions: inject("extensions"), settings: { "deepscope.interpreter": python } });
      await bench.openFile(PROGRAM);
      const message = await bench.told(`DeepScope is not installed in ${python}`);
      await bench.screenshot("not-installed");
      await message.getByRole("button", { name: "Install…" }).click();
      const choices = bench.page.locator(".quick-input-list .monaco-list-row");
      await choices.filter({ hasText: "pip install" }).first().waitFor();
      await bench.screenshot("install-choice");
      await expect.poll(() => choices.first().innerText()).toContain(`${python} -m pip install --upgrade deepscope[lsp,dashboard]`);
      await bench.page.keyboard.press("Escape");
      expect(bench.editor.processes("pip")).toEqual([]);
    } finally {
      own.remove();
    }
  });

  it("says nothing of a missing DeepScope until it is asked for, and installs into no Python of the system", async () => {
    const own = scratch();
    try {
      // Debian's own Python, where pip refuses to install; elsewhere a bare environment.
      const isManaged = readdirSync("/usr/lib").some((name) => existsSync(join("/usr/lib", name, "EXTERNALLY-MANAGED")));
      const python = isManaged ? "/usr/bin/python3" : join(own.path, "bare", "bin", "python");
      if (!isManaged) {
        execFileSync(PYTHON, ["-m", "venv", "--without-pip", join(own.path, "bare")]);
      }
      const folder = join(own.path, "plain");
      mkdirSync(folder);
      writeFileSync(join(folder, "plain.py"), "print(1)\n");
      bench = await Workbench.open({ folder, extensions: inject("extensions"), settings: { "deepscope.interpreter": python } });
      await bench.openFile("plain.py");
      await expect.poll(() => bench!.editor.extensionLog()).toContain("DeepScope not installed");
      await bench.status.filter({ has: bench.page.locator(".codicon-circle-slash") }).waitFor();
      await bench.showDeepScope();
      await bench.page.getByText("Nothing is installed unasked").first().waitFor();
      await bench.screenshot("not-asked");
      expect(await bench.notification("DeepScope").count()).toBe(0);

      await bench.showTab("plain.py");
      await bench.run("DeepScope: Run Python File with DeepScope");
      const message = await bench.told(`DeepScope is not installed in ${python}`);
      await message.getByRole("button", { name: "Install…" }).click();
      const first = bench.page.locator(".quick-input-list .monaco-list-row").first();
      await first.filter({ hasText: isManaged ? "Into a new .venv of the workspace" : "Into this environment" }).waitFor();
      await bench.screenshot("install-managed");
      await bench.page.keyboard.press("Escape");
      expect(bench.editor.processes("pip")).toEqual([]);
    } finally {
      own.remove();
    }
  });

  it("starts nothing of a restricted workspace, and says so", async () => {
    bench = await Workbench.open({
      folder: inject("project"),
      extensions: inject("extensions"),
      isRestricted: true,
      settings: { "deepscope.interpreter": "", "security.workspace.trust.startupPrompt": "never" },
    });
    await bench.openFile(PROGRAM);
    await bench.status.filter({ hasText: "restricted" }).waitFor();
    await bench.showDeepScope();
    await bench.page.getByText(/This workspace is restricted/).first().waitFor();
    await bench.screenshot("restricted");
    expect(bench.editor.processes("deepscope_lsp")).toEqual([]);
    expect(bench.editor.processes("probe.py")).toEqual([]);
    await expect.poll(() => bench!.editor.extensionLog()).toContain("restricted workspace: no interpreter is started");
  });
});
