/** The flame graph in an editor tab. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Jumps } from "../jumps";
import type { Depth, FlameGraph, FlameMetric, RecordedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { stepTimeWords } from "../status/words";
import { DEPTHS, keptDepth } from "../depths";
import { readOr } from "../shape";
import { page } from "../page";
import { drawnTree, frameLabels, framesOf, rankIn } from "./drawn";
import { boxOfMenu, fromPage, type FromPage, type ToPage } from "./messages";

const BODY = `<header>
<label>Metric <select id="metric"></select></label>
<label>Down to <select id="depth"></select></label>
<label id="rankLabel">Rank <select id="rank"></select></label>
<input id="search" type="search" placeholder="Search functions and files" aria-label="Search">
<button id="reset" type="button">Reset Zoom</button>
<span id="caption"></span>
</header>
<ul id="legend" aria-label="Colours"></ul>
<main id="chart" role="img" aria-label="Flame graph"></main>
<p id="details" aria-live="polite"></p>`;

/** Narrower than this of the whole, a box cannot be seen, and a large tree would take long to draw. */
const SMALLEST_SHARE = 0.0005;

const STATE_DEPTH = "deepscope.flameGraph.depth";
const DEFAULT_DEPTH: Depth = "kernel";

export class FlamePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private graph: FlameGraph | undefined;
  private metric: FlameMetric = "device";
  private rank: number | null = null;
  private focus: RecordedLine | undefined;
  private isReady = false;
  private generation = 0;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly state: vscode.Memento,
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly jumps: Jumps,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** Shows the graph, and in it all boxes of a line where one is given. */
  async open(focus?: RecordedLine): Promise<void> {
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
    const { status } = this.session;
    const trace = status?.trace;
    if (trace == null) {
      this.post({ type: "empty", message: "No trace is shown." });
      return;
    }
    this.rank = rankIn(trace.ranks, this.rank);
    const generation = (this.generation += 1);
    let graph: FlameGraph;
    try {
      graph = await this.ask();
    } catch (error) {
      this.log.error(`flame graph: ${String(error)}`);
      this.post({ type: "empty", message: error instanceof Error ? error.message : String(error) });
      return;
    }
    if (generation !== this.generation) {
      return; // another metric, rank or trace was chosen meanwhile
    }
    this.graph = graph;
    this.post({
      type: "graph",
      root: drawnTree(graph),
      metric: this.metric,
      metrics: ["device", "backward", "cpu"],
      depth: graph.depth,
      depths: [...DEPTHS],
      rank: this.rank,
      ranks: [...trace.ranks],
      caption: [`${graph.totalWords} ${graph.stepWords}, ${trace.stepsWords}`, status === undefined ? "" : stepTimeWords(status)]
        .filter((words) => words !== "")
        .join(" · "),
      isDevice: trace.metric === "device",
    });
    void vscode.commands.executeCommand("setContext", "deepscope.hasShownFlameGraph", true); // ticks a step of the walkthrough
    if (this.focus !== undefined) {
      this.post({ type: "mark", frames: framesOf(graph, this.focus) });
    }
    this.focus = undefined;
  }

  /** Names the lines as they stand now; what is drawn, zoomed and marked stays. */
  async relabel(): Promise<void> {
    const { graph, generation } = this;
    if (graph === undefined || !this.isReady || this.session.status?.trace == null) {
      return;
    }
    const now = await this.ask().catch(() => undefined);
    const isSame = now !== undefined && generation === this.generation && now.total === graph.total && now.frames.length === graph.frames.length;
    if (isSame) {
      this.graph = now;
      this.post({ type: "labels", labels: frameLabels(now) });
    }
  }

  /** The line of the box whose menu was opened (`webviews/flame.ts` names its frame). */
  lineOf(box: unknown): RecordedLine | undefined {
    const frame = readOr(boxOfMenu, box)?.frame;
    const line = frame === undefined ? undefined : this.graph?.frames[frame];
    return line === undefined ? undefined : { file: line.file, line: line.line };
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
    panel.iconPath = tabIcon(this.extensionUri);
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
        await this.state.update(STATE_DEPTH, message.depth);
        await this.refresh();
        break;
      case "open":
        await this.jump(message.frame).catch((error: unknown) => this.log.error(`flame graph: ${String(error)}`));
        break;
    }
  }

  private async jump(frame: number): Promise<void> {
    const line = this.graph?.frames[frame];
    if (line !== undefined) {
      await this.jumps.open(line, { viewColumn: besideOf(this.panel) });
    }
  }

  private ask(): Promise<FlameGraph> {
    return this.requests.flameGraph({ metric: this.metric, rank: this.rank, depth: this.depth, minShare: SMALLEST_SHARE });
  }

  private get depth(): Depth {
    return keptDepth(this.state.get(STATE_DEPTH), DEFAULT_DEPTH);
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

/** The mark on the tab of a panel, which takes no colour of the theme's. */
export function tabIcon(extensionUri: vscode.Uri): { light: vscode.Uri; dark: vscode.Uri } {
  const named = (name: string): vscode.Uri => vscode.Uri.joinPath(extensionUri, "media", name);
  return { light: named("tab-light.svg"), dark: named("tab-dark.svg") };
}
