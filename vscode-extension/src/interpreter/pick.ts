/** The list of Pythons to choose from, and the setting that the choice is written to. */

import * as vscode from "vscode";
import type { Candidate } from "./candidates";
import { pythonWords, type Facts, type Failure } from "./probe";
import type { Interpreters } from "./resolve";

const PYTHON_EXTENSION = "ms-python.python";

interface Item extends vscode.QuickPickItem {
  readonly python?: string;
  readonly action?: "browse" | "install" | "pythonExtension";
}

/** Shows the Pythons that are found here with what they have, and uses the one that is chosen from now on; or installs. */
export async function pickInterpreter(interpreters: Interpreters, current: string | undefined, install: () => Promise<void>): Promise<void> {
  const chosen = await choose(interpreters, current);
  if (chosen?.action === "pythonExtension") {
    await setInterpreter(undefined); // the setting stands alone: beside it the Python extension is not asked
    await vscode.commands.executeCommand("python.setInterpreter");
    return;
  }
  if (chosen?.action === "install") {
    await install();
    return;
  }
  const python = chosen?.action === "browse" ? await browse() : chosen?.python;
  if (python !== undefined) {
    await setInterpreter(python);
  }
}

/** Writes the setting where it holds: a workspace's stays there, a remote window's is that of its machine. */
export async function setInterpreter(python: string | undefined): Promise<void> {
  const settings = vscode.workspace.getConfiguration("deepscope");
  const { Global, Workspace } = vscode.ConfigurationTarget;
  const known = settings.inspect<string>("interpreter");
  const isInWorkspace = known?.workspaceValue !== undefined || (vscode.env.remoteName === undefined && vscode.workspace.workspaceFolders !== undefined);
  if (python === undefined && known?.workspaceValue === undefined && known?.globalValue === undefined) {
    return;
  }
  await settings.update("interpreter", python, isInWorkspace && vscode.workspace.isTrusted ? Workspace : Global);
}

async function choose(interpreters: Interpreters, current: string | undefined): Promise<Item | undefined> {
  const list = vscode.window.createQuickPick<Item>();
  list.title = "Select the Python that DeepScope uses";
  list.placeholder = "Recording needs DeepScope beside PyTorch; it is installed into the Python that you choose, after asking";
  list.matchOnDescription = list.matchOnDetail = true;
  list.busy = true;
  let isOver = false;
  const chosen = new Promise<Item | undefined>((resolve) => {
    list.onDidAccept(() => resolve(list.activeItems[0]));
    list.onDidHide(() => resolve(undefined));
  });
  list.show();
  const fill = async (): Promise<void> => {
    const found = await interpreters.every();
    const facts = new Map<string, Facts | Failure>();
    const draw = (): void => {
      if (!isOver) {
        list.items = [...found.map((one) => itemOf(one, facts.get(one.python), current)), ...lastItems()];
      }
    };
    draw();
    const told = (python: string, answer: Facts | Failure): void => {
      const active = list.activeItems[0]?.python;
      facts.set(python, answer);
      draw();
      list.activeItems = list.items.filter((item) => item.python !== undefined && item.python === active);
    };
    list.keepScrollPosition = true;
    await interpreters.ask(found.map(({ python }) => python), told, () => isOver);
  };
  void fill().finally(() => {
    list.busy = false;
  });
  try {
    return await chosen;
  } finally {
    isOver = true;
    list.dispose();
  }
}

function itemOf(one: Candidate, facts: Facts | Failure | undefined, current: string | undefined): Item {
  return { ...pythonWords(one, facts, one.python === current), python: one.python, alwaysShow: false };
}

function lastItems(): Item[] {
  const browse: Item = { label: "$(folder-opened) Browse…", description: "another Python of this machine", action: "browse" };
  const theirs: Item = { label: "$(python) As the Python Extension Has It…", description: "choose there, and follow it", action: "pythonExtension" };
  const installing: Item = { label: "$(cloud-download) Install DeepScope…", description: "or upgrade it; asks where to", action: "install" };
  const { isTrusted } = vscode.workspace;
  const hasTheirs = vscode.extensions.getExtension(PYTHON_EXTENSION) !== undefined && isTrusted;
  return [{ label: "", kind: vscode.QuickPickItemKind.Separator }, browse, ...(hasTheirs ? [theirs] : []), ...(isTrusted ? [installing] : [])];
}

async function browse(): Promise<string | undefined> {
  const files = await vscode.window.showOpenDialog({ title: "The Python that DeepScope uses", canSelectMany: false });
  return files?.[0]?.fsPath;
}
