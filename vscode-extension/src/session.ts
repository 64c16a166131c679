/** What is going on: interpreter, server and the trace that is shown; all views follow this one object. */

import * as vscode from "vscode";
import { isBelowAny } from "./paths";
import { install, offerInstall } from "./interpreter/install";
import type { Interpreter, Interpreters, Missing, Resolution } from "./interpreter/resolve";
import { notify } from "./notify";
import type { Status } from "./server/contract";
import type { LanguageServer } from "./server/languageServer";
import type { Standing } from "./status/words";

const TRACES = "**/*.pt.trace.json{,.gz}";
const SETTLING_MS = 20_000;
const NOT_THEIRS = "**/{node_modules,site-packages,.git}/**";

/** A change of what is shown. */
export interface Change {
  readonly standing: Standing;
  readonly status: Status | undefined;
}

export class Session implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<Change>();
  readonly onChange = this.changes.event;
  private readonly statuses = new Map<string, Status>();
  private readonly subscriptions: vscode.Disposable[] = [];
  private currentStanding: Standing = "off";
  private current: Interpreter | undefined;
  /** What was found instead of an interpreter with DeepScope. */
  private missing: Missing | undefined;
  private attempt = 0;
  private isTold = false;

  constructor(
    private readonly interpreters: Interpreters,
    private readonly server: LanguageServer,
    private readonly log: vscode.LogOutputChannel,
  ) {
    server.requests.rootFor = (path) => this.rootFor(path);
    this.subscriptions.push(
      server.onStatus((status) => {
        this.statuses.set(status.root ?? "", status);
        this.stand(this.status?.state ?? status.state);
      }),
      server.onRunning((running) => {
        if (running === "failed" || running === "starting") {
          this.stand(running);
        }
        void vscode.commands.executeCommand("setContext", "deepscope.serverRunning", running === "running");
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => void this.start()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("deepscope.interpreter")) {
          void this.start("asked");
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        if (this.statuses.size > 1) {
          this.stand(this.status?.state ?? this.currentStanding);
        }
      }),
    );
    const traces = vscode.workspace.createFileSystemWatcher(TRACES, false, true, true);
    this.subscriptions.push(traces, traces.onDidCreate(() => this.traceCame()));
    void this.interpreters.onDidChangeActive(() => void this.start()).then((listener) => {
      if (listener !== undefined) {
        this.subscriptions.push(listener);
      }
    });
  }

  get standing(): Standing {
    return this.currentStanding;
  }

  /** The status of the workspace folder that the active editor is in, else of the first that shows a trace. */
  get status(): Status | undefined {
    const active = vscode.window.activeTextEditor?.document.uri;
    const folder = active === undefined ? undefined : vscode.workspace.getWorkspaceFolder(active)?.uri.toString();
    const near = folder === undefined ? undefined : this.statuses.get(folder);
    const all = [...this.statuses.values()];
    return near?.trace != null ? near : (all.find((status) => status.trace !== null) ?? near ?? all[0]);
  }

  /** The workspace folder that holds a trace, as the server names it; without a path the folder that is shown. */
  private rootFor(path: string | null | undefined): string | undefined {
    const roots = [...this.statuses.keys()].filter((root) => root !== "");
    const holding = path == null ? [] : roots.filter((root) => isBelowAny(path, [vscode.Uri.parse(root).fsPath]));
    const nearest = holding.sort((one, other) => other.length - one.length)[0];
    return roots.length < 2 ? undefined : (nearest ?? this.status?.root ?? undefined);
  }

  /** Waits until it is known whether a server runs; for a while at most. */
  async settled(): Promise<void> {
    if (this.currentStanding === "starting") {
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          listener.dispose();
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(finish, SETTLING_MS);
        const listener = this.onChange(({ standing }) => {
          if (standing !== "starting") {
            finish();
          }
        });
      });
    }
  }

  get interpreter(): Interpreter | undefined {
    return this.current;
  }

  /**
   * Finds an interpreter and starts the server. Where none has DeepScope the user is told if they asked for something, or if
   * there is a trace to show; else the status item alone says so.
   */
  async start(why: "opened" | "asked" = "opened"): Promise<void> {
    const attempt = (this.attempt += 1);
    this.statuses.clear();
    this.missing = undefined;
    this.stand("starting");
    let isMissing = false;
    try {
      const resolution = await this.interpreters.resolve();
      if (attempt === this.attempt) {
        isMissing = await this.startWith(resolution);
      } // else a newer start has taken over
    } catch (error) {
      this.log.error(`DeepScope could not be started: ${String(error)}`);
      if (attempt === this.attempt) {
        this.stand("failed");
      }
      if (why === "asked") {
        void notify("error", `DeepScope could not be started: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    if (isMissing && attempt === this.attempt && (why === "asked" || (await hasTraces()))) {
      await this.offer();
    }
  }

  /** Starts the server with what was found; whether DeepScope is missing. */
  private async startWith(resolution: Resolution): Promise<boolean> {
    if (resolution.kind === "ready") {
      this.current = resolution.interpreter;
      await this.server.start(resolution.interpreter, await this.interpreters.neutralFolder());
      return false;
    }
    await this.server.stop();
    this.current = resolution.kind === "lacking" ? resolution.interpreter : undefined;
    if (resolution.kind === "restricted") {
      this.log.info("restricted workspace: no interpreter is started; set deepscope.interpreter in the user settings to read traces");
      this.stand("restricted");
      return false;
    }
    this.missing = resolution;
    this.stand("missing");
    return true;
  }

  /** Whether a program can be recorded with the interpreter at hand. */
  get canRecord(): boolean {
    const { missing } = this;
    return this.current !== undefined && (missing === undefined || (missing.kind === "lacking" && missing.verdict === "noServer"));
  }

  /** Says what is missing, and what can be done about it. */
  async offer(): Promise<void> {
    const { missing } = this;
    if (missing === undefined) {
      return;
    }
    this.isTold = true;
    switch (await offerInstall(missing, this.interpreters)) {
      case "installed":
        await this.start("asked");
        break;
      case "pick":
        await vscode.commands.executeCommand("deepscope.selectInterpreter");
        break;
      case "logs":
        this.log.show();
        break;
      case undefined:
        break;
    }
  }

  /** Installs DeepScope into the interpreter at hand, as the user asked for. */
  async install(): Promise<void> {
    if (this.current === undefined) {
      await this.start("asked");
    } else if (await install(this.current, this.interpreters)) {
      await this.start("asked");
    }
  }

  /** Takes in a status that was the answer to a request. */
  take(status: Status): void {
    this.statuses.set(status.root ?? "", status);
    this.stand(status.state);
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions, this.changes).dispose();
  }

  /** The first trace of a workspace is the moment at which a missing DeepScope matters. */
  private traceCame(): void {
    if (this.missing !== undefined && !this.isTold) {
      this.isTold = true;
      void this.offer();
    }
  }

  private stand(standing: Standing): void {
    this.currentStanding = standing;
    void vscode.commands.executeCommand("setContext", "deepscope.state", standing === "failed" ? "off" : standing);
    this.changes.fire({ standing, status: this.status });
  }
}

async function hasTraces(): Promise<boolean> {
  return (await vscode.workspace.findFiles(TRACES, NOT_THEIRS, 1)).length > 0;
}
