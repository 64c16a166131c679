/** The commands of the palette and the menus; each one line of what it does. */

import * as vscode from "vscode";
import type { Dashboard } from "./dashboard/dashboard";
import type { FlamePanel } from "./flame/panel";
import { notify } from "./notify";
import { cursorPlace, openPlace } from "./places";
import type { Notices } from "./run/notices";
import type { Runner } from "./run/runner";
import { pickCaller } from "./server/callers";
import type { Status } from "./server/contract";
import type { LanguageServer } from "./server/languageServer";
import type { Requests } from "./server/requests";
import type { Session } from "./session";
import { pickInterpreter, pickTrace } from "./pickers";
import type { LineKey } from "./views/callPathRows";
import type { CallPathsView } from "./views/callPathsView";
import type { Row } from "./views/hotLinesRows";
import type { HotLinesView } from "./views/hotLinesView";
import type { TraceRow } from "./views/runRows";
import type { RunsView } from "./views/runsView";

export interface Parts {
  readonly context: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly session: Session;
  readonly server: LanguageServer;
  readonly requests: Requests;
  readonly hotLines: HotLinesView;
  readonly callPaths: CallPathsView;
  readonly runs: RunsView;
  readonly flame: FlamePanel;
  readonly dashboard: Dashboard;
  readonly runner: Runner;
  readonly notices: Notices;
}

/** What a row of a view hands to a command: the line that it stands for. */
interface LineArgument {
  readonly line?: { readonly file: string; readonly line: number; readonly uri: string | null; readonly currentLine: number | null } | undefined;
  readonly path?: { readonly file: string; readonly line: number; readonly uri: string | null; readonly currentLine: number | null };
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { session, requests, hotLines, callPaths, runs, flame, dashboard, runner, notices } = parts;

  const take = async (answer: Promise<Status>): Promise<void> => {
    notices.expectChange();
    session.take(await answer);
  };
  const dropBaseline = async (): Promise<void> => {
    await requests.clearBaseline();
  };

  const actions: Readonly<Record<string, (...given: never[]) => unknown>> = {
    // Of the views' rows; not in the palette.
    "deepscope.open": (row: LineArgument) => openLine(row),
    "deepscope.hotLines.copy": (row: Row) => hotLines.copy(row),
    "deepscope.hotLines.hide": (row: Row) => hotLines.hide(row),
    "deepscope.runs.select": (row: TraceRow) => take(requests.selectTrace(row.trace.path)),
    "deepscope.runs.delete": (row: TraceRow) => runs.delete(row),
    "deepscope.runs.reveal": (row: TraceRow) =>
      vscode.commands.executeCommand("revealInExplorer", vscode.Uri.file(row.trace.path)),
    "deepscope.runs.dashboard": (row: TraceRow) => dashboard.open(row.trace.path),

    "deepscope.hotLines.groupBy": () => hotLines.chooseGroup(),
    "deepscope.hotLines.sortBy": () => hotLines.chooseMetric(),
    "deepscope.hotLines.showHidden": () => hotLines.showHidden(),
    "deepscope.runs.newest": () => take(requests.selectTrace(null)),
    "deepscope.refresh": () => take(requests.reload()),
    "deepscope.useAsBaseline": (row?: TraceRow) => take(requests.setBaseline(row?.trace.path ?? null)),
    "deepscope.dropBaseline": dropBaseline,
    "deepscope.pickTrace": async () => {
      const chosen = await pickTrace(runs, session);
      if (chosen !== undefined) {
        await take(requests.selectTrace(chosen));
      }
    },

    "deepscope.toggleHeat": () => {
      const settings = vscode.workspace.getConfiguration("deepscope.heat");
      return settings.update("enabled", !settings.get<boolean>("enabled", true), vscode.ConfigurationTarget.Global);
    },
    "deepscope.openFlameGraph": () => flame.open(),
    "deepscope.showInFlameGraph": (row?: LineArgument) => flame.open(keyOf(row)),
    "deepscope.showLineCallPaths": async (row?: LineArgument) => {
      const key = keyOf(row);
      await (key === undefined ? undefined : callPaths.reveal(key));
    },
    "deepscope.showLineCallers": async (row?: LineArgument) => {
      const place = recordedOf(row) ?? cursorPlace();
      if (place !== undefined) {
        await pickCaller(await requests.callers(place));
      }
    },
    "deepscope.openDashboard": () => dashboard.open(),
    "deepscope.openDashboardInBrowser": () => dashboard.openInBrowser(),
    "deepscope.runFile": (uri?: vscode.Uri) => runner.runFile(uri),

    "deepscope.restartServer": () => session.start(),
    "deepscope.showLogs": () => parts.log.show(),
    "deepscope.selectInterpreter": () => pickInterpreter(),
    "deepscope.install": () => session.install(),
    "deepscope.showHiddenFindings": () => requests.unhideFindings(),
  };
  return Object.entries(actions).map(([name, action]) =>
    vscode.commands.registerCommand(name, async (...given: never[]) => {
      try {
        return await action(...given);
      } catch (error) {
        parts.log.error(`${name}: ${String(error)}`);
        void notify("error", `DeepScope: ${error instanceof Error ? error.message : String(error)}`);
        return undefined;
      }
    }),
  );
}

async function openLine(row: LineArgument): Promise<void> {
  const line = row.line ?? row.path;
  if (line?.uri == null) {
    void notify("info", `DeepScope: ${line?.file ?? "this file"} was not found here.`);
    return;
  }
  await openPlace({ uri: line.uri, line: line.currentLine ?? line.line });
}

/** The line of a row; without a row the one that the cursor is on. */
function keyOf(row: LineArgument | undefined): LineKey | undefined {
  return recordedOf(row) ?? cursorPlace();
}

function recordedOf(row: LineArgument | undefined): { file: string; line: number } | undefined {
  const line = row?.line ?? row?.path;
  return line === undefined ? undefined : { file: line.file, line: line.line };
}

