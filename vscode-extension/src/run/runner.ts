/** Runs a Python file with DeepScope recording it, as a task in a terminal. */

import * as path from "node:path";
import * as vscode from "vscode";
import { notify } from "../notify";
import type { TryCommand } from "../server/contract";
import { list, object, readOr, text, withDefault } from "../shape";
import type { Session } from "../session";

const TYPE = "deepscope";
const definition = object({ program: text, args: withDefault(list(text), []) });

export class Runner implements vscode.Disposable {
  private readonly provider: vscode.Disposable;

  constructor(private readonly session: Session) {
    this.provider = vscode.tasks.registerTaskProvider(TYPE, {
      provideTasks: () => {
        const file = vscode.window.activeTextEditor?.document;
        return file?.languageId === "python" && file.uri.scheme === "file" ? this.tasks(file.uri.fsPath) : [];
      },
      resolveTask: (task) => {
        const wanted = readOr(definition, task.definition);
        return wanted === undefined ? undefined : this.task(wanted.program, wanted.args, task.definition, task.scope);
      },
    });
  }

  /** The file given, else that in the active editor; saved first. */
  async runFile(given?: vscode.Uri): Promise<void> {
    const document = given === undefined ? vscode.window.activeTextEditor?.document : await vscode.workspace.openTextDocument(given);
    if (document?.languageId !== "python" || document.uri.scheme !== "file") {
      void notify("info", "DeepScope: open the Python file to run.");
      return;
    }
    if (!vscode.workspace.isTrusted) {
      void notify("info", "DeepScope: this workspace is restricted; trust it to run its files.");
      return;
    }
    if (!this.session.canRecord) {
      await this.session.offer();
      return;
    }
    await document.save();
    const args = vscode.workspace.getConfiguration("deepscope", document).get<string[]>("run.arguments", []);
    const program = document.uri.fsPath;
    const task = this.task(program, args, { type: TYPE, program, args }, scopeOf(document.uri));
    if (task === undefined) {
      void notify("error", "DeepScope: no Python interpreter to run the file with; see its logs.", "Show Logs").then((choice) =>
        choice === undefined ? undefined : vscode.commands.executeCommand("deepscope.showLogs"),
      );
      return;
    }
    await vscode.tasks.executeTask(task);
  }

  /** Runs `deepscope try` for a finding, where the user sees it, agrees and reads the answer; it then stands at the finding, too. */
  async tryFinding({ arguments: words, folder, program }: TryCommand): Promise<void> {
    const { interpreter } = this.session;
    if (!vscode.workspace.isTrusted || interpreter === undefined) {
      void notify("info", "DeepScope: trying a remedy runs the program: that takes a trusted workspace and a Python with DeepScope.");
      return;
    }
    const scope = scopeOf(vscode.Uri.file(folder || program));
    const args = vscode.workspace.getConfiguration("deepscope", typeof scope === "object" ? scope : null).get<string[]>("run.arguments", []);
    const cwd = folder === "" ? path.dirname(program) : folder;
    const name = `Try ${words[1] ?? ""} on ${path.basename(program)}`;
    const task = inTerminal({ type: TYPE, try: words[1] }, scope, name, interpreter.python, [...words, ...args], cwd);
    task.presentationOptions = { ...task.presentationOptions, focus: true }; // it asks
    await vscode.tasks.executeTask(task);
  }

  dispose(): void {
    this.provider.dispose();
  }

  private tasks(program: string): vscode.Task[] {
    const task = this.task(program, [], { type: TYPE, program }, scopeOf(vscode.Uri.file(program)));
    return task === undefined ? [] : [task];
  }

  private task(
    program: string,
    args: readonly string[],
    wanted: vscode.TaskDefinition,
    scope: vscode.WorkspaceFolder | vscode.TaskScope | undefined,
  ): vscode.Task | undefined {
    const { interpreter } = this.session;
    if (interpreter === undefined || !vscode.workspace.isTrusted) {
      return undefined;
    }
    const folder = typeof scope === "object" ? scope : vscode.workspace.workspaceFolders?.[0];
    const cwd = folder?.uri.fsPath ?? path.dirname(program);
    const name = `Record ${path.basename(program)}`;
    return inTerminal(wanted, scope ?? vscode.TaskScope.Workspace, name, interpreter.python, ["run", program, ...args], cwd);
  }
}

/** `deepscope` with these words, as a task in a terminal of its own. */
export function inTerminal(
  wanted: vscode.TaskDefinition,
  scope: vscode.WorkspaceFolder | vscode.TaskScope,
  name: string,
  python: string,
  words: readonly string[],
  cwd: string,
): vscode.Task {
  const execution = new vscode.ProcessExecution(python, ["-m", "deepscope", ...words], { cwd });
  const task = new vscode.Task(wanted, scope, name, "DeepScope", execution);
  task.problemMatchers = []; // set, so that VS Code does not ask for one
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
  return task;
}

function scopeOf(uri: vscode.Uri): vscode.WorkspaceFolder | vscode.TaskScope {
  return vscode.workspace.getWorkspaceFolder(uri) ?? vscode.TaskScope.Workspace;
}
