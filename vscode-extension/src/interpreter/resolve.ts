/** Finds the interpreter that the server, the dashboard and recorded runs use. */

import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import { candidates, everyPython, type Candidate, type Surroundings } from "./candidates";
import { judge, probe, type Facts, type Failure, type Verdict } from "./probe";

/** What was found: an interpreter that will do, one that lacks something, or none at all. */
export type Resolution =
  | { readonly kind: "ready"; readonly interpreter: Interpreter }
  | { readonly kind: "lacking"; readonly interpreter: Interpreter; readonly verdict: Exclude<Verdict, "ready"> }
  | { readonly kind: "none"; readonly tried: readonly string[] }
  | { readonly kind: "restricted" };

/** What was found in place of an interpreter that will do. */
export type Missing = Extract<Resolution, { kind: "lacking" | "none" }>;

export interface Interpreter extends Candidate {
  readonly facts: Facts;
}

/** A Python of a list is asked so long, and so many at a time. */
const ASKED_MS = 10_000;
const ASKED_AT_ONCE = 4;

export class Interpreters {
  readonly ownEnvironment: string;
  private readonly folder: string;
  private readonly script: string;

  constructor(
    context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.folder = context.globalStorageUri.fsPath;
    this.ownEnvironment = path.join(this.folder, "environment");
    this.script = context.asAbsolutePath(path.join("resources", "probe.py"));
  }

  /** A folder in which a Python process finds nothing of the workspace to import. */
  async neutralFolder(): Promise<string> {
    await fs.promises.mkdir(this.folder, { recursive: true });
    return this.folder;
  }

  /** The first candidate with a new enough DeepScope; else the first with PyTorch, or that runs, with what it lacks. */
  async resolve(): Promise<Resolution> {
    const cwd = await this.neutralFolder();
    const tried: string[] = [];
    let lacking: Extract<Resolution, { kind: "lacking" }> | undefined;
    const found = candidates(await this.surroundings());
    if (found.length === 0 && !vscode.workspace.isTrusted) {
      return { kind: "restricted" };
    }
    for (const candidate of found) {
      const facts = await probe(candidate.python, this.script, cwd);
      if ("failure" in facts) {
        this.log.warn(`${candidate.python} (${candidate.origin}): ${facts.failure}`);
        tried.push(`${candidate.python}: ${facts.failure}`);
        continue;
      }
      const verdict = judge(facts);
      this.log.info(
        `${candidate.python} (${candidate.origin}): Python ${facts.python}, DeepScope ${facts.deepscope ?? "not installed"}`,
      );
      const interpreter = { ...candidate, facts };
      if (verdict === "ready") {
        return { kind: "ready", interpreter };
      }
      // DeepScope belongs beside PyTorch.
      if (lacking === undefined || (facts.hasTorch && verdict !== "tooOldPython" && !lacking.interpreter.facts.hasTorch)) {
        lacking = { kind: "lacking", interpreter, verdict };
      }
    }
    return lacking ?? { kind: "none", tried };
  }

  /** All Pythons that were found here, in the order in which they are offered. */
  async every(): Promise<Candidate[]> {
    const around = await this.surroundings();
    return everyPython({
      ...around,
      knownEnvironments: around.isTrusted ? await knownEnvironments() : [],
      environment: process.env,
      list: (folder) => (fs.existsSync(folder) ? namesIn(folder) : []),
      realPath: (file) => (fs.existsSync(file) ? fs.realpathSync(file) : file),
    });
  }

  /** Asks Pythons what they have, a few at a time and for a short while each; `told` gets each answer. */
  async ask(pythons: readonly string[], told: (python: string, facts: Facts | Failure) => void, isOver: () => boolean = () => false): Promise<void> {
    const cwd = await this.neutralFolder();
    const left = [...pythons];
    const worker = async (): Promise<void> => {
      for (let python = left.shift(); python !== undefined && !isOver(); python = left.shift()) {
        told(python, await probe(python, this.script, cwd, ASKED_MS));
      }
    };
    await Promise.all(Array.from({ length: ASKED_AT_ONCE }, worker));
  }

  /** Told when the user picks another environment in the Python extension. */
  async onDidChangeActive(listener: () => void): Promise<vscode.Disposable | undefined> {
    const python = await pythonExtension().catch(() => undefined); // `activeEnvironment` tells
    return python?.environments.onDidChangeActiveEnvironmentPath(listener);
  }

  private async surroundings(): Promise<Surroundings> {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
    const configured = vscode.workspace.getConfiguration("deepscope", folders[0]?.uri);
    const { isTrusted } = vscode.workspace;
    return {
      isTrusted,
      setting: configured.get("interpreter", ""),
      userSetting: configured.inspect<string>("interpreter")?.globalValue ?? "",
      activeEnvironment: isTrusted ? await this.activeEnvironment(folders[0]?.uri) : undefined,
      folders: folders.map((folder) => folder.uri.fsPath),
      home: os.homedir(),
      searchPath: (process.env["PATH"] ?? "").split(path.delimiter),
      ownEnvironment: this.ownEnvironment,
      isWindows: process.platform === "win32",
      exists: (file) => fs.existsSync(file),
    };
  }

  private async activeEnvironment(resource: vscode.Uri | undefined): Promise<string | undefined> {
    try {
      const python = await pythonExtension();
      const active = python?.environments.getActiveEnvironmentPath(resource);
      return active === undefined ? undefined : (await python?.environments.resolveEnvironment(active))?.executable.uri?.fsPath;
    } catch (error) {
      this.log.warn(`the Python extension does not say which environment is active: ${String(error)}`);
      return undefined;
    }
  }
}

async function pythonExtension(): Promise<PythonExtension | undefined> {
  if (vscode.extensions.getExtension("ms-python.python") === undefined) {
    return undefined;
  }
  const api = await PythonExtension.api();
  await api.ready;
  return api;
}

async function knownEnvironments(): Promise<string[]> {
  const python = await pythonExtension().catch(() => undefined);
  return (python?.environments.known ?? []).flatMap(({ executable }) => executable.uri?.fsPath ?? []);
}

function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder).sort();
  } catch {
    return [];
  }
}
