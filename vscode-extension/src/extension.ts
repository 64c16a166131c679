/** Wires the extension together: server → session → views, commands → actions. */

import * as vscode from "vscode";
import { offerMcpServer, offerTool } from "./assistant";
import { registerCommands } from "./commands";
import { commandsMiddleware, dashboardMiddleware } from "./server/middleware";
import { DashboardPanel } from "./dashboard/panel";
import { Edits } from "./edits";
import { Heat } from "./heat/heat";
import { Interpreters } from "./interpreter/resolve";
import { Jumps } from "./jumps";
import { Attacher } from "./run/attacher";
import { Notices } from "./run/notices";
import { Elsewhere } from "./elsewhere";
import { Runner } from "./run/runner";
import { LanguageServer } from "./server/languageServer";
import { Session } from "./session";
import { StatusItem } from "./status/statusItem";
import { TensorBoardPanel } from "./tensorboard/panel";
import { CallPathsView } from "./views/callPathsView";
import { HotLinesView } from "./views/hotLinesView";
import { RunsView } from "./views/runsView";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("DeepScope", { log: true });
  const interpreters = new Interpreters(context, log);
  const server: LanguageServer = new LanguageServer(log, {
    ...commandsMiddleware(() => server.requests, () => jumps, () => runner),
    ...dashboardMiddleware,
  });
  const { requests } = server;
  const elsewhere = new Elsewhere(requests);
  const jumps: Jumps = new Jumps(requests, elsewhere);
  const edits = new Edits();
  const session = new Session(interpreters, server, log);

  const status = new StatusItem();
  const heat = new Heat(requests, log);
  const hotLines = new HotLinesView(context.workspaceState, session, requests, log);
  const callPaths = new CallPathsView(context.workspaceState, session, requests, log);
  const runs = new RunsView(session, requests, log);
  const dashboard = new DashboardPanel(context, session, requests, jumps, log);
  const tensorboard = new TensorBoardPanel(context, session, requests, log);
  const runner: Runner = new Runner(session);
  const attacher = new Attacher(context.workspaceState, session, interpreters);
  const notices = new Notices(requests, jumps, log);

  const relocate = (): void => {
    hotLines.relocate();
    callPaths.refresh();
  };
  context.subscriptions.push(
    log,
    server,
    session,
    status,
    heat,
    hotLines,
    callPaths,
    runs,
    dashboard,
    tensorboard,
    runner,
    edits,
    elsewhere,
    jumps,
    edits.onSettled(relocate),
    jumps.onMapped(relocate),
    session.onChange(({ standing, status: shown }) => {
      status.show(standing, shown);
      if (standing === "loading" || standing === "starting") {
        if (standing === "loading") {
          void runs.showReading();
        }
        return; // what is shown stays until the numbers are there
      }
      heat.setOn(standing === "ready");
      void hotLines.refresh();
      callPaths.refresh();
      runs.endReading();
      void runs.refresh();
      void dashboard.follow();
      void notices.follow(shown);
    }),
    heat.onEdited((edited) => status.showEdited(edited)),
    ...registerCommands({ context, log, session, interpreters, server, requests, jumps, hotLines, callPaths, runs, dashboard, tensorboard, runner, attacher, notices }),
  );
  for (const offered of [offerMcpServer(session), offerTool(requests)]) {
    if (offered !== undefined) {
      context.subscriptions.push(offered);
    }
  }
  void session.start();
}
