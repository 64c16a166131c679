/** TensorBoard in a panel beside the code, or in the browser. */

import * as path from "node:path";
import * as vscode from "vscode";
import { notify } from "../notify";
import { CrashPolicy } from "../server/crashes";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { readOr } from "../shape";
import { assetsOf, besideOf, pageOf, tabIcon } from "../tabs";
import { fromPage, type FrameClick, type FromPage } from "./messages";
import { isSame, only, TensorBoard, type Shown } from "./process";
import { openPlace } from "../places";
import { isLocalAbsolute } from "../paths";

const REMOTE = /^[a-z][a-z0-9+.-]+:\/\//i;
const BODY = `<header><span id="place"></span><button id="browser" type="button">Open in Browser</button></header>
<iframe id="board" title="TensorBoard" sandbox="allow-scripts allow-same-origin allow-forms allow-popups allow-downloads"></iframe>`;

export class TensorBoardPanel implements vscode.Disposable {
  private board: { readonly process: TensorBoard; readonly shown: Shown } | undefined;
  private panel: vscode.WebviewPanel | undefined;
  private readonly crashes = new CrashPolicy();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** Shows these traces; without an argument those that the editor shows. */
  async open(paths?: readonly string[]): Promise<void> {
    const shown = this.chosen(paths);
    if (shown === undefined) {
      return;
    }
    this.panel ??= this.createPanel();
    this.panel.reveal(undefined, true);
    this.crashes.forget();
    await this.load(shown);
  }

  async openInBrowser(): Promise<void> {
    const shown = this.board?.shown ?? this.chosen();
    if (shown !== undefined) {
      await vscode.env.openExternal(await this.externalUri(shown));
    }
  }

  dispose(): void {
    this.panel?.dispose();
    this.endBoard();
  }

  private chosen(paths: readonly string[] = this.session.status?.trace?.paths ?? []): Shown | undefined {
    if (!vscode.workspace.isTrusted) {
      void notify("info", "DeepScope: this workspace is restricted; trust it to start TensorBoard.");
      return undefined;
    }
    if (paths.length === 0) {
      void notify("info", "DeepScope: no trace is shown yet; record a run or select a trace.");
      return undefined;
    }
    if (paths.some((path) => REMOTE.test(path))) {
      void notify("info", "DeepScope: TensorBoard reads local folders; the dashboard shows this trace.");
      return undefined;
    }
    return only(paths);
  }

  private async load(shown: Shown): Promise<void> {
    const { panel } = this;
    if (panel === undefined) {
      return;
    }
    try {
      const uri = await vscode.window.withProgress(
        { location: { viewId: "deepscope.runs" }, title: "Starting TensorBoard" },
        () => this.externalUri(shown),
      );
      this.showPage(panel, uri, shown);
    } catch (error) {
      this.log.error(`TensorBoard: ${String(error)}`);
      panel.dispose();
      const choice = await notify(
        "error",
        `DeepScope: TensorBoard did not start: ${error instanceof Error ? error.message : String(error)}`,
        "Show Logs",
      );
      if (choice !== undefined) {
        this.log.show();
      }
    }
  }

  /** The address of a TensorBoard that shows this, as the browser can reach it. */
  private async externalUri(shown: Shown): Promise<vscode.Uri> {
    const { interpreter } = this.session;
    if (interpreter === undefined) {
      throw new Error("no Python interpreter was found");
    }
    if (!interpreter.facts.hasTensorBoard) {
      throw new Error(`${interpreter.python} lacks TensorBoard; run: pip install 'deepscope[tensorboard]'`);
    }
    if (this.board === undefined || !isSame(shown, this.board.shown)) {
      this.endBoard();
      const settings = vscode.workspace.getConfiguration("deepscope");
      this.board = {
        shown,
        process: new TensorBoard({
          python: interpreter.python,
          script: this.context.asAbsolutePath(path.join("resources", "board.py")),
          shown: shown.words,
          extraArguments: settings.get<string[]>("tensorboard.arguments", []),
          cwd: this.context.globalStorageUri.fsPath,
          say: (line) => this.log.info(`TensorBoard: ${line}`),
          died: () => this.died(shown),
        }),
      };
    }
    return vscode.env.asExternalUri(vscode.Uri.parse(await this.board.process.url));
  }

  /** A TensorBoard that ended by itself is started again while its panel is open. */
  private died(shown: Shown): void {
    this.log.warn("TensorBoard has ended");
    this.board = undefined;
    const pauseMs = this.crashes.crashed();
    if (this.panel === undefined) {
      return;
    }
    if (pauseMs === undefined) {
      this.panel.dispose();
      void notify("error", "DeepScope: TensorBoard ended several times; its output is in the logs.");
      return;
    }
    setTimeout(() => void this.load(shown), pauseMs);
  }

  private endBoard(): void {
    this.board?.process.end();
    this.board = undefined;
  }

  private createPanel(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel(
      "deepscope.tensorboard",
      "TensorBoard",
      { viewColumn: vscode.ViewColumn.Active, preserveFocus: true },
      { enableScripts: true, localResourceRoots: [assetsOf(this.context.extensionUri)], retainContextWhenHidden: true },
    );
    panel.iconPath = tabIcon(this.context.extensionUri);
    panel.webview.onDidReceiveMessage((given: unknown) => {
      const message = readOr(fromPage, given);
      if (message !== undefined) {
        void this.receive(message).catch((error: unknown) => this.log.error(`TensorBoard: ${String(error)}`));
      }
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.endBoard();
    });
    return panel;
  }

  private showPage(panel: vscode.WebviewPanel, uri: vscode.Uri, shown: Shown): void {
    const address = uri.toString(true);
    panel.webview.html = pageOf(panel.webview, this.context.extensionUri, "board", {
      title: "TensorBoard",
      frameOrigin: new URL(address).origin,
      body: BODY,
      data: { url: `${address}#pytorch_profiler`, folder: shown.title },
    });
  }

  private async receive(message: FromPage): Promise<void> {
    switch (message.type) {
      case "browser":
        await this.openInBrowser();
        break;
      case "command":
        await vscode.commands.executeCommand(message.command);
        break;
      case "open":
        this.log.info(`TensorBoard: ${message.filename}:${message.line}`);
        await jump(message, this.requests, besideOf(this.panel));
        break;
    }
  }
}

/** Opens the line of a frame. */
async function jump(click: FrameClick, requests: Requests, viewColumn: vscode.ViewColumn): Promise<void> {
  const found = await find(click, requests);
  if (found === undefined) {
    void notify("info", `DeepScope: ${click.filename} was not found here.`);
    return;
  }
  await openPlace(found, { viewColumn });
}

/** Through the server's path mapping; else the path itself, if it is one of this machine. */
async function find(click: FrameClick, requests: Requests): Promise<{ uri: string; line: number } | undefined> {
  const known = await requests.resolvePath(click.filename, click.line).catch(() => null);
  if (known !== null) {
    return known;
  }
  if (!isLocalAbsolute(click.filename)) {
    return undefined;
  }
  const uri = vscode.Uri.file(click.filename);
  try {
    const { type } = await vscode.workspace.fs.stat(uri);
    return (type & vscode.FileType.File) === 0 ? undefined : { uri: uri.toString(), line: click.line };
  } catch {
    return undefined;
  }
}
