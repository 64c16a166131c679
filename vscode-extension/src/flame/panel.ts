/** The flame graph in an editor tab. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { openPlace } from "../places";
import type { FlameGraph, FlameMetric } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { readOr } from "../shape";
import { page } from "../page";
import type { LineKey } from "../views/callPathRows";
import { duration } from "../units";
import { plain, stepWords } from "../status/words";
import { drawnTree, frameOf } from "./drawn";
import { fromPage, type FromPage, type ToPage } from "./messages";

const BODY = `<header>
<label>Metric <select id="metric"></select></label>
<label id="rankLabel">Rank <select id="rank"></select></label>
<input id="search" type="search" placeholder="Search functions and files" aria-label="Search">
<button id="reset" type="button">Reset Zoom</button>
<span id="caption"></span>
</header>
<main id="chart" role="img" aria-label="Flame graph"></main>
<p id="details" aria-live="polite"></p>`;

export class FlamePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private graph: FlameGraph | undefined;
  private metric: FlameMetric = "device";
  private rank: number | null = null;
  private focus: LineKey | undefined;
  private isReady = false;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** Shows the graph, and in it a line where one is given. */
  async open(focus?: LineKey): Promise<void> {
    this.focus = focus;
    if (this.panel === undefined) {
      this.panel = this.create();
      return; // its page asks when it is ready
    }
    this.panel.reveal(undefined, true);
    await this.refresh();
  }

  /** Draws anew what is shown now. */
  async refresh(): Promise<void> {
    if (this.panel === undefined || !this.isReady) {
      return;
    }
    const trace = this.session.status?.trace;
    if (trace == null) {
      this.post({ type: "empty", message: "No trace is shown." });
      return;
    }
    try {
      this.graph = await this.requests.flameGraph(this.metric, this.rank);
    } catch (error) {
      this.log.error(`flame graph: ${String(error)}`);
      this.post({ type: "empty", message: error instanceof Error ? error.message : String(error) });
      return;
    }
    this.post({
      type: "graph",
      root: drawnTree(this.graph),
      metric: this.metric,
      metrics: ["device", "backward", "cpu"],
      rank: this.rank,
      ranks: trace.ranks,
      caption: `${duration(this.graph.total)} in ${stepWords(trace)}`,
      isDevice: trace.metric === "device",
    });
    const frame = this.focus === undefined ? undefined : frameOf(this.graph, this.focus);
    if (frame !== undefined) {
      this.post({ type: "focus", frame });
    }
    this.focus = undefined;
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private create(): vscode.WebviewPanel {
    const dist = vscode.Uri.joinPath(this.extensionUri, "dist", "webviews");
    const panel = vscode.window.createWebviewPanel(
      "deepscope.flame",
      "Flame Graph",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false },
      { enableScripts: true, localResourceRoots: [dist], retainContextWhenHidden: true },
    );
    const { webview } = panel;
    panel.iconPath = vscode.Uri.joinPath(this.extensionUri, "media", "activity.svg");
    webview.onDidReceiveMessage((given: unknown) => {
      const message = readOr(fromPage, given);
      if (message !== undefined) {
        void this.receive(message);
      }
    });
    panel.onDidDispose(() => {
      [this.panel, this.graph, this.isReady] = [undefined, undefined, false];
    });
    webview.html = page(
      {
        title: "Flame Graph",
        cspSource: webview.cspSource,
        script: webview.asWebviewUri(vscode.Uri.joinPath(dist, "flame.js")).toString(),
        style: webview.asWebviewUri(vscode.Uri.joinPath(dist, "flame.css")).toString(),
        body: BODY,
      },
      randomBytes(16).toString("hex"),
    );
    return panel;
  }

  private async receive(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        await this.refresh();
        break;
      case "choose":
        [this.metric, this.rank] = [message.metric, message.rank];
        await this.refresh();
        break;
      case "open":
        await this.jump(message.frame);
        break;
    }
  }

  private async jump(frame: number): Promise<void> {
    const line = this.graph?.frames[frame];
    if (line?.uri == null) {
      void vscode.window.setStatusBarMessage(plain(`DeepScope: ${line?.file ?? "this frame"} was not found here`), 4000);
      return;
    }
    await openPlace({ uri: line.uri, line: line.currentLine ?? line.line }, { viewColumn: besideOf(this.panel) });
  }

  private post(message: ToPage): void {
    void this.panel?.webview.postMessage(message);
  }
}

/** A column for code that leaves the panel in sight: one with a text editor, else the one beside it. */
export function besideOf(panel: vscode.WebviewPanel | undefined): vscode.ViewColumn {
  const other = vscode.window.tabGroups.all.find((group) => group.viewColumn !== panel?.viewColumn);
  return other?.viewColumn ?? vscode.ViewColumn.Beside;
}
