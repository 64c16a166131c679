/** The language server's process and connection: started, watched, restarted, ended. */

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  MessageType,
  RevealOutputChannelOn,
  ShowMessageNotification,
  ShowMessageRequest,
  State,
  type ErrorHandler,
  type Middleware,
} from "vscode-languageclient/node";
import type { Interpreter } from "../interpreter/resolve";
import { notify, type Kind } from "../notify";
import { readOr } from "../shape";
import { status as readStatus, STATUS_NOTIFICATION, type Status } from "./contract";
import { CrashPolicy } from "./crashes";
import { Requests } from "./requests";

/** A server that has not answered by then is given up on; starting Python on a busy network file system is slow. */
const START_LIMIT_MS = 60_000;

/** `stopped` also when it was never started; `failed` when it crashed too often. */
export type Running = "stopped" | "starting" | "running" | "failed";

/** The client's own pop-ups go to the log: the user hears one message, from `tellFailed`. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class LanguageServer implements vscode.Disposable {
  readonly requests: Requests;
  private client: LanguageClient | undefined;
  private readonly crashes = new CrashPolicy();
  private wishes = 0;
  private turn: Promise<void> = Promise.resolve();
  private readonly statusEmitter = new vscode.EventEmitter<Status>();
  private readonly runningEmitter = new vscode.EventEmitter<Running>();
  readonly onStatus = this.statusEmitter.event;
  readonly onRunning = this.runningEmitter.event;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
  ) {
    this.requests = new Requests(async (command, argument) => {
      if (this.client?.state !== State.Running) {
        throw new Error("DeepScope's language server is not running");
      }
      return this.client.sendRequest("workspace/executeCommand", { command, arguments: [argument] });
    });
  }

  /** Starts the server with an interpreter, in place of one that runs. */
  start(interpreter: Interpreter, cwd: string): Promise<void> {
    return this.inTurn(() => this.run(interpreter, cwd));
  }

  stop(): Promise<void> {
    return this.inTurn(() => Promise.resolve());
  }

  dispose(): void {
    void this.stop();
    this.statusEmitter.dispose();
    this.runningEmitter.dispose();
  }

  /** Starts and stops one after the other: a client that is still starting cannot be stopped. The last wish counts. */
  private inTurn(next: () => Promise<void>): Promise<void> {
    const wish = (this.wishes += 1);
    this.turn = this.turn.then(async () => {
      if (wish === this.wishes) {
        await this.end();
        await next();
      }
    });
    return this.turn;
  }

  private async run(interpreter: Interpreter, cwd: string): Promise<void> {
    this.crashes.forget();
    this.runningEmitter.fire("starting");
    const client: LanguageClient = new QuietClient(
      "deepscope",
      "DeepScope",
      {
        command: interpreter.python,
        args: ["-m", "deepscope_lsp", "--log-level", levelOf(this.log.logLevel)],
        // Not the workspace: `-m` puts the working folder first on the import path.
        options: { cwd },
      },
      {
        documentSelector: [
          { scheme: "file", language: "python" },
          { notebook: { scheme: "file", notebookType: "jupyter-notebook" }, language: "python" },
        ],
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        markdown: { isTrusted: false, supportHtml: false },
        errorHandler: this.errorHandler(() => client === this.client),
        initializationFailedHandler: () => false,
        middleware: this.middleware,
      },
    );
    client.onNotification(STATUS_NOTIFICATION, (given: unknown) => {
      const status = readOr(readStatus, given);
      if (status === undefined) {
        this.log.error("the server sent a status that is none");
      } else {
        this.statusEmitter.fire(status);
      }
    });
    client.onNotification(ShowMessageNotification.type, ({ type, message }) => void notify(kindOf(type), message));
    client.onRequest(ShowMessageRequest.type, async ({ type, message, actions = [] }) => {
      const title = await notify(kindOf(type), message, ...actions.map((action) => action.title));
      return actions.find((action) => action.title === title) ?? null;
    });
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) {
        this.runningEmitter.fire("running");
      }
    });
    this.client = client;
    try {
      await inTime(client.start(), START_LIMIT_MS);
    } catch (error) {
      this.log.error(`the language server did not start: ${String(error)}`);
      if (this.crashes.count === 0) {
        // It could not even be run. A process that ends at once counts as a crash and is started again.
        this.runningEmitter.fire("failed");
        void this.tellFailed("DeepScope's language server did not start.");
      }
    }
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined) {
      await client.dispose().catch((error: unknown) => this.log.warn(`ending the server: ${String(error)}`));
      this.runningEmitter.fire("stopped");
    }
  }

  /** After a crash: a longer pause each time, then one message. */
  private errorHandler(isCurrent: () => boolean): ErrorHandler {
    return {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: async () => {
        if (!isCurrent()) {
          return { action: CloseAction.DoNotRestart, handled: true };
        }
        const pauseMs = this.crashes.crashed();
        if (pauseMs === undefined) {
          this.runningEmitter.fire("failed");
          void this.tellFailed(`DeepScope's language server stopped ${this.crashes.count} times in a short time.`);
          return { action: CloseAction.DoNotRestart, handled: true };
        }
        this.log.warn(`the language server has ended; starting it again in ${pauseMs} ms`);
        this.runningEmitter.fire("starting");
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        return { action: isCurrent() ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private async tellFailed(message: string): Promise<void> {
    const choice = await notify("error", message, "Show Logs", "Restart");
    if (choice === "Show Logs") {
      this.log.show();
    } else if (choice === "Restart") {
      await vscode.commands.executeCommand("deepscope.restart");
    }
  }
}

/** What the server writes at a level of its output channel (*Developer: Set Log Level…*). */
function levelOf(level: vscode.LogLevel): "debug" | "warning" | "error" {
  switch (level) {
    case vscode.LogLevel.Trace:
    case vscode.LogLevel.Debug:
      return "debug";
    case vscode.LogLevel.Info:
    case vscode.LogLevel.Warning:
      return "warning";
    case vscode.LogLevel.Error:
    case vscode.LogLevel.Off:
      return "error";
  }
}

function kindOf(type: MessageType): Kind {
  return type === MessageType.Error ? "error" : type === MessageType.Warning ? "warning" : "info";
}

async function inTime(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${limitMs / 1000} s`)), limitMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
