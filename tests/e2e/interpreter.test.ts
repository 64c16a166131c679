import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { environmentWithDeepScope, environmentWithoutDeepScope, indexOfOurOwn, pretendInstalled } from "./support/environments";
import { copyProject, PROGRAM, scratch } from "./support/recorded";
import { PYTHON } from "./support/surroundings";
import { Workbench } from "./support/workbench";

describe("the interpreter", () => {
  let own: ReturnType<typeof scratch>;
  let bench: Workbench | undefined;
  beforeEach(() => {
    own = scratch();
  });
  afterEach(async () => {
    await bench?.close();
    bench = undefined;
    own.remove();
  });

  /** Waits until the server runs with an interpreter that was found in a certain way. */
  const running = async (python: string, origin: string): Promise<void> => {
    await expect.poll(() => bench!.editor.extensionLog().trimEnd().split("\n").filter((line) => line.includes("DeepScope 0")).at(-1)).toContain(`${python} (${origin})`);
    await expect.poll(() => bench!.editor.commandLines("deepscope_lsp").map((words) => words[0])).toEqual([python]);
  };

  it("is the setting's, else the Python extension's active one, and follows both", async () => {
    const other = environmentWithDeepScope(join(own.path, "other"));
    const project = copyProject(inject("project"), join(own.path, "project"));
    environmentWithDeepScope(join(project, ".venv")); // stands behind both
    bench = await Workbench.open({
      folder: project,
      extensions: inject("extensionsWithPython"),
      settings: { "deepscope.interpreter": "" },
      env: { FAKE_PYTHON_ENVIRONMENTS: `${PYTHON}:${other}` },
    });
    await bench.openFile(PROGRAM);
    await running(PYTHON, "pythonExtension");
    await bench.run("DeepScope: Select Interpreter");
    await bench.page.locator(".quick-input-widget:visible .quick-input-box input").first().fill("As the Python Extension");
    await bench.pick("Select the Python", "As the Python Extension Has It");
    await running(other, "pythonExtension");
    bench.editor.set({ "deepscope.interpreter": PYTHON });
    await running(PYTHON, "setting");
    await bench.traceShown();
  });

  it("is the workspace's own environment where nothing else is chosen", async () => {
    const project = copyProject(inject("project"), join(own.path, "project"));
    const python = environmentWithDeepScope(join(project, ".venv"));
    bench = await Workbench.open({ folder: project, extensions: inject("extensions"), settings: { "deepscope.interpreter": "" } });
    await bench.openFile(PROGRAM);
    await running(python, "workspaceVenv");
    await bench.traceShown();

    // Another one of the list, which knows what each has; in a remote window the choice is the machine's.
    const bare = environmentWithoutDeepScope(join(project, "venv"));
    const chosen = environmentWithDeepScope(join(bench.editor.home, "miniconda3", "envs", "train"));
    await bench.run("DeepScope: Select Interpreter");
    const rows = bench.page.locator(".quick-input-list .monaco-list-row");
    await rows.filter({ hasText: bare }).filter({ hasText: /torch ✓\s+DeepScope ✗/ }).waitFor();
    await rows.filter({ hasText: python }).filter({ hasText: "current" }).waitFor();
    await rows.filter({ hasText: chosen }).filter({ hasText: /torch ✓\s+DeepScope ✓ · conda/ }).waitFor();
    await bench.screenshot("select-interpreter");
    await bench.pick("Select the Python", chosen);
    await running(chosen, "setting");
    expect(bench.editor.machineSettings()).toContain(chosen);
  });

  it("with too old a DeepScope is upgraded when the user says so, and then used", async () => {
    const python = environmentWithoutDeepScope(join(own.path, "old"));
    pretendInstalled(python, "0.0.1");
    mkdirSync(join(own.path, "wheels"));
    bench = await Workbench.open({
      folder: inject("project"),
      extensions: inject("extensions"),
      settings: { "deepscope.interpreter": python },
      env: indexOfOurOwn(join(own.path, "wheels")),
    });
    await bench.openFile(PROGRAM);
    const message = await bench.told(`${python} has DeepScope 0.0.1; this extension needs 0.1.0 or later`);
    await bench.screenshot("upgrade");
    await message.getByRole("button", { name: "Upgrade…" }).click();
    await bench.pick("Install DeepScope", "Into this environment");
    await bench.traceShown();
    await bench.screenshot("upgraded");
    await running(python, "setting");
  });
});
