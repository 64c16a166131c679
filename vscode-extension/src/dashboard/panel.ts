/** The dashboard: DeepScope's pages in a panel, with the traces that the editor shows. */

import * as vscode from "vscode";
import type { Jumps } from "../jumps";
import { notify } from "../notify";
import { CrashPolicy } from "../server/crashes";
import type { RecordedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { readOr } from "../shape";
import { assetsOf, besideOf, pageOf, tabIcon } from "../tabs";
import { flameAddress, sawFlameGraph } from "./links";
import { fromPages, keptState, type FromPages, type ToPages } from "./messages";
import { GoneError, ViewServer, type Reply, type Shown } from "./server";

const VIEW = "deepscope.dashboard";
const ATTEMPTS = 4;

export class DashboardPanel implements vscode.Disposable, vscode.WebviewPanelSerializer {
  private panel: vscode.WebviewPanel | undefined;
  private server: Promise<ViewServer> | undefined;
  private started: ViewServer | undefined;
  private shown: Shown = { paths: [], first: "", hosts: [] };
  /** Traces that were asked for, until the editor shows others. */
  private asked: readonly string[] = [];
  private editorShows = "";
  /** Where the pages are. */
  private hash = "";
  private isReady = false;
  /** Then the server outlives its panel. */
  private isInBrowser = false;
  /** Counts the ends of servers: a start that was under way meanwhile is given up. */
  private ends = 0;
  private readonly hosts = new Set<string>();
  private readonly crashes = new CrashPolicy();
  private readonly registration = vscode.window.registerWebviewPanelSerializer(VIEW, this);

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly jumps: Jumps,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** Shows the pages, at an address of theirs or for the run of given traces; `isBeside` the code, which keeps the focus. */
  async open({ hash, paths, isBeside = false }: { readonly hash?: string; readonly paths?: readonly string[] | undefined; readonly isBeside?: boolean } = {}): Promise<void> {
    if (!mayStart()) {
      return;
    }
    this.crashes.forget();
    if (paths !== undefined) {
      this.asked = paths;
    }
    const to = hash ?? (paths === undefined ? undefined : "#/");
    if (this.panel === undefined) {
      const column = isBeside ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active;
      this.take(vscode.window.createWebviewPanel(VIEW, "DeepScope Dashboard", column, { retainContextWhenHidden: true }), to ?? "");
      return; // its pages ask
    }
    this.panel.reveal(undefined, isBeside);
    if (to !== undefined && this.isReady) {
      this.post({ type: "go", hash: to });
    } else if (to !== undefined) {
      this.hash = to;
    }
    if (this.started === undefined) {
      this.post({ type: "changed", isOther: false }); // what failed is asked again
    }
    await this.follow();
  }

  /** Shows a line on one of the pages. */
  async show(name: "lines" | "timeline", { file, line }: RecordedLine): Promise<void> {
    await this.open({ hash: `#/${name}?${new URLSearchParams({ file, line: String(line) }).toString()}` });
  }

  /** Shows the flame graph beside the code, and in it all boxes of a line where one is given. */
  async showFlameGraph(line?: RecordedLine): Promise<void> {
    await this.open({ hash: flameAddress(this.context.workspaceState, line), isBeside: true });
  }

  async openInBrowser(): Promise<void> {
    if (!mayStart()) {
      return;
    }
    await this.session.settled();
    const server = await this.running();
    const uri = await vscode.env.asExternalUri(vscode.Uri.parse((await server.address).href));
    this.isInBrowser = true;
    this.hosts.add(new URL(uri.toString(true)).hostname);
    this.shown = { ...this.shown, hosts: [...this.hosts] };
    await server.show(this.shown);
    await vscode.env.openExternal(uri.with({ fragment: this.panel === undefined ? "" : this.hash.slice(1) }));
    tickWalkthrough();
  }

  step(to: "back" | "forward"): void {
    this.post({ type: to });
  }

  /** A panel of the window before. */
  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Thenable<void> {
    if (!vscode.workspace.isTrusted || this.panel !== undefined) {
      panel.dispose();
    } else {
      this.take(panel, readOr(keptState, state)?.hash ?? "");
    }
    return Promise.resolve();
  }

  /** Shows what the editor shows now. */
  async follow(): Promise<void> {
    const { started } = this;
    if (started === undefined) {
      return;
    }
    if (started.python !== this.session.interpreter?.python) {
      this.end();
      this.post({ type: "changed", isOther: false });
      return;
    }
    const now = await this.wanted();
    const before = this.shown;
    if (JSON.stringify(now) !== JSON.stringify(before)) {
      this.shown = now;
      await started.show(now);
      this.post({ type: "changed", isOther: now.first !== before.first });
    }
  }

  dispose(): void {
    this.panel?.dispose();
    this.end();
    this.registration.dispose();
  }

  /** All traces that the editor knows, and one of the run that it shows. */
  private async wanted(): Promise<Shown> {
    const { status } = this.session;
    const here = status?.trace?.paths ?? [];
    if (here.length > 0 && here[0] !== this.editorShows) {
      this.asked = this.editorShows === "" ? this.asked : [];
      this.editorShows = here[0] ?? "";
    }
    const known = (await this.requests.listRuns().catch(() => [])).flatMap(({ traces }) => traces.map(({ path }) => path));
    return { paths: [...new Set([...this.asked, ...here, ...known])].sort(), first: this.asked[0] ?? here[0] ?? "", hosts: [...this.hosts] };
  }

  private running(): Promise<ViewServer> {
    this.server ??= this.start();
    return this.server;
  }

  private async start(pauseMs = 0): Promise<ViewServer> {
    const { ends } = this;
    try {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const { interpreter } = this.session;
      if (interpreter === undefined) {
        throw new Error("no Python interpreter was found; DeepScope: Select Interpreter… names one");
      }
      const shown = await this.wanted();
      if (ends !== this.ends) {
        throw new GoneError("the dashboard was closed before its server started");
      }
      this.shown = shown;
      const settings = vscode.workspace.getConfiguration("deepscope");
      const peaks = settings.get<string>("peaks", "");
      const { partial } = settings.get<{ readonly partial?: boolean }>("show", {});
      const server: ViewServer = new ViewServer({
        python: interpreter.python,
        shown,
        extraArguments: [...(partial === true ? ["--partial"] : []), ...(peaks === "" ? [] : [`--peaks=${peaks}`])],
        cwd: this.context.globalStorageUri.fsPath,
        say: (line) => this.log.info(`dashboard: ${line}`),
        died: () => this.died(server),
      });
      this.started = server;
      await server.address;
      return server;
    } catch (error) {
      if (ends === this.ends) {
        this.end();
      }
      throw error;
    }
  }

  /** A server that ended by itself is started again while its panel is open. */
  private died(server: ViewServer): void {
    if (this.started !== server) {
      return;
    }
    this.log.warn("the dashboard's server has ended");
    this.started = undefined;
    const pauseMs = this.crashes.crashed();
    if (this.panel === undefined) {
      this.server = undefined;
    } else if (pauseMs === undefined) {
      this.server = Promise.reject(new Error("the dashboard's server ended several times; DeepScope: Show Logs has its output"));
      this.server.catch(() => undefined);
    } else {
      this.server = this.start(pauseMs);
      this.server.catch(() => undefined);
    }
  }

  private end(): void {
    this.ends += 1;
    this.started?.end();
    this.started = this.server = undefined;
    this.isInBrowser = false;
  }

  private take(panel: vscode.WebviewPanel, hash: string): void {
    [this.panel, this.hash, this.isReady] = [panel, hash, false];
    const { webview } = panel;
    const { extensionUri } = this.context;
    panel.iconPath = tabIcon(extensionUri);
    webview.options = { enableScripts: true, localResourceRoots: [assetsOf(extensionUri)] };
    webview.onDidReceiveMessage((given: unknown) => {
      const message = readOr(fromPages, given);
      if (message !== undefined) {
        void this.receive(message).catch((error: unknown) => this.log.error(`dashboard: ${String(error)}`));
      }
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      if (!this.isInBrowser) {
        this.end();
      }
    });
    webview.html = pageOf(webview, extensionUri, "pages", { title: "DeepScope Dashboard", body: '<div id="root"></div>', data: { door: "panel" } });
  }

  private async receive(message: FromPages): Promise<void> {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        tickWalkthrough();
        this.post({ type: "start", hash: this.hash });
        await this.visited();
        break;
      case "at":
        this.hash = message.hash;
        await this.visited();
        break;
      case "open":
        this.log.info(`dashboard: ${message.file}:${message.line}`);
        await this.jumps.openNamed(message, { viewColumn: besideOf(this.panel) });
        break;
      case "ask":
        this.post({ type: "answer", id: message.id, ...(await this.answer(message.name, message.query)) });
        break;
    }
  }

  private async visited(): Promise<void> {
    if (await sawFlameGraph(this.context.workspaceState, this.hash)) {
      tickWalkthrough("FlameGraph");
    }
  }

  /** What the server answers; a server that ends meanwhile is asked again when it is back. */
  private async answer(name: string, query: string): Promise<Reply> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.session.settled();
        if (this.panel === undefined) {
          throw new Error("the dashboard was closed"); // no server is started for nobody
        }
        return await (await this.running()).ask(name, query);
      } catch (error) {
        if (!(error instanceof GoneError) || attempt === ATTEMPTS) {
          this.log.error(`dashboard: ${name}: ${String(error)}`);
          return { status: 503, body: JSON.stringify({ error: error instanceof Error ? error.message : String(error) }) };
        }
        await new Promise((resolve) => setTimeout(resolve, 100 * attempt)); // its end is told in a moment
      }
    }
  }

  private post(message: ToPages): void {
    void this.panel?.webview.postMessage(message);
  }
}

function mayStart(): boolean {
  if (!vscode.workspace.isTrusted) {
    void notify("info", "DeepScope: this workspace is restricted; trust it to start the dashboard.");
  }
  return vscode.workspace.isTrusted;
}

/** A step of the walkthrough is done by whichever way the pages were opened. */
function tickWalkthrough(step: "Dashboard" | "FlameGraph" = "Dashboard"): void {
  void vscode.commands.executeCommand("setContext", `deepscope.hasShown${step}`, true);
}
