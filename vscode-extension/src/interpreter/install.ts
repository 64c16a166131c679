/** Offers to install or upgrade DeepScope; shows what is run, and runs nothing unasked. */

import * as fs from "node:fs";
import * as vscode from "vscode";
import { notify } from "../notify";
import { installChoices } from "./choices";
import { setInterpreter } from "./pick";
import { judge, MINIMUM_DEEPSCOPE, MINIMUM_PYTHON } from "./probe";
import type { Interpreter, Interpreters, Missing } from "./resolve";

/** Says what is missing and what can be done; answers when the user has chosen and what they chose has ended. */
export async function offerInstall(
  resolution: Missing,
  interpreters: Interpreters,
): Promise<"installed" | "logs" | "pick" | undefined> {
  const lacking = resolution.kind === "lacking" && resolution.verdict !== "tooOldPython" ? resolution : undefined;
  const verbs = lacking === undefined ? [] : [lacking.verdict === "tooOldDeepScope" ? "Upgrade…" : "Install…"];
  const choice = await notify(lacking === undefined ? "error" : "warning", wording(resolution), ...verbs, "Select Interpreter", "Show Logs");
  switch (choice) {
    case undefined:
      return undefined;
    case "Select Interpreter":
      return "pick";
    case "Show Logs":
      return "logs";
    default:
      return lacking !== undefined && (await install(lacking.interpreter, interpreters)) ? "installed" : undefined;
  }
}

/** Asks where to install, shows the commands in a terminal and waits for their end; answers whether they succeeded. */
export async function install(interpreter: Interpreter, interpreters: Interpreters): Promise<boolean> {
  const withTorch = interpreter.facts.hasTorch ? [] : await beside(interpreters);
  const choices = installChoices({ ...interpreter, withTorch }, {
    folders: (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath),
    ownEnvironment: interpreters.ownEnvironment,
    isWindows: process.platform === "win32",
    exists: (file) => fs.existsSync(file),
  });
  const choice = await vscode.window.showQuickPick([...choices], {
    title: "Install DeepScope: nothing is run before you choose",
    placeHolder: "Where to?",
  });
  if (choice === undefined) {
    return false;
  }
  const cwd = await interpreters.neutralFolder();
  for (const [command, ...args] of choice.steps) {
    if ((await runTask(command, args, cwd)) !== 0) {
      return false;
    }
  }
  const isNamed = interpreter.origin === "setting" && choice.python !== interpreter.python;
  if (isNamed || withTorch.includes(choice.python)) {
    await setInterpreter(choice.python); // the setting stands alone; without it others are tried first
  }
  return true;
}

/** The Pythons of this machine that have PyTorch and are new enough. */
async function beside(interpreters: Interpreters): Promise<string[]> {
  const found = (await interpreters.every()).map(({ python }) => python);
  const has = new Set<string>();
  const ask = (): Promise<void> =>
    interpreters.ask(found, (python, facts) => {
      if (!("failure" in facts) && facts.hasTorch && !facts.isExternallyManaged && judge(facts) !== "tooOldPython") {
        has.add(python);
      }
    });
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: "DeepScope: looking for a Python with PyTorch" }, ask);
  return found.filter((python) => has.has(python));
}

function wording(resolution: Missing): string {
  if (resolution.kind === "none") {
    return `DeepScope found no Python ${MINIMUM_PYTHON} or later that runs${resolution.tried.length > 0 ? ` (tried ${resolution.tried.length})` : ""}.`;
  }
  const { python, facts } = resolution.interpreter;
  switch (resolution.verdict) {
    case "tooOldPython":
      return `DeepScope needs Python ${MINIMUM_PYTHON} or later; ${python} is ${facts.python}.`;
    case "noDeepScope":
      return `DeepScope is not installed in ${python}.`;
    case "tooOldDeepScope":
      return `${python} has DeepScope ${facts.deepscope ?? ""}; this extension needs ${MINIMUM_DEEPSCOPE} or later.`;
    case "noServer":
      return `DeepScope in ${python} lacks its language server (the extra "lsp").`;
  }
}

function runTask(command: string, args: string[], cwd: string): Promise<number> {
  const task = new vscode.Task(
    { type: "deepscope.install" },
    vscode.TaskScope.Global,
    "Install DeepScope",
    "DeepScope",
    new vscode.ProcessExecution(command, args, { cwd }),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, echo: true };
  return new Promise((resolve, reject) => {
    const ended = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution.task.definition.type === "deepscope.install") {
        ended.dispose();
        resolve(event.exitCode ?? 1);
      }
    });
    vscode.tasks.executeTask(task).then(undefined, (error: unknown) => {
      ended.dispose();
      reject(error instanceof Error ? error : new Error(String(error)));
    });
  });
}
