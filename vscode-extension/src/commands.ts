/** The commands of the palette and the menus, one line for each. */

import * as vscode from "vscode";
import type { DashboardPanel } from "./dashboard/panel";
import type { FlamePanel } from "./flame/panel";
import type { Jumps } from "./jumps";
import { textPlace } from "./dashboard/links";
import { pickInterpreter } from "./interpreter/pick";
import type { Interpreters } from "./interpreter/resolve";
import { notify } from "./notify";
import { cursorPlace } from "./places";
import type { Attacher } from "./run/attacher";
import type { Notices } from "./run/notices";
import type { Runner } from "./run/runner";
import { recordedAt } from "./recordedTexts";
import { pickCaller } from "./server/callers";
import type { RecordedLine, Status } from "./server/contract";
import type { LanguageServer } from "./server/languageServer";
import type { Requests } from "./server/requests";
import type { Session } from "./session";
import { pickTrace } from "./pickers";
import { readOr } from "./shape";
import type { TensorBoardPanel } from "./tensorboard/panel";
import type { CallPathsView } from "./views/callPathsView";
import type { Row } from "./views/hotLinesRows";
import type { HotLinesView } from "./views/hotLinesView";
import { chosenBy, pathsOf, type RunRow, type TraceRow } from "./views/runRows";
import type { RunsView } from "./views/runsView";

export interface Parts {
  readonly context: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly session: Session;
  readonly interpreters: Interpreters;
  readonly server: LanguageServer;
  readonly requests: Requests;
  readonly jumps: Jumps;
  readonly hotLines: HotLinesView;
  readonly callPaths: CallPathsView;
  readonly runs: RunsView;
  readonly flame: FlamePanel;
  readonly dashboard: DashboardPanel;
  readonly tensorboard: TensorBoardPanel;
  readonly runner: Runner;
  readonly attacher: Attacher;
  readonly notices: Notices;
}

/** What a row of a view hands to a command: the line that it stands for. */
interface LineArgument {
  readonly line?: RecordedLine | undefined;
  readonly path?: RecordedLine;
  readonly gone?: RecordedLine | undefined;
  /** It stands for a part of a line's work: its place was not measured. */
  readonly isPart?: boolean;
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { session, requests, jumps, hotLines, callPaths, runs, flame, dashboard, tensorboard, runner, attacher, notices } = parts;

  const take = async (answer: Promise<Status>): Promise<void> => {
    notices.expectChange();
    session.take(await answer);
  };
  /** The line of a row; without a row the one that the cursor is on. */
  const lineOf = async (row: LineArgument | undefined): Promise<RecordedLine | undefined> => {
    const place = readOr(textPlace, row) ?? recordedOf(row) ?? cursorPlace();
    return place === undefined || "file" in place ? place : recordedAt(place, requests);
  };
  /** Shows a line on a page of the dashboard. */
  const showOn = async (name: "lines" | "timeline", row: LineArgument | undefined): Promise<void> => {
    const line = await lineOf(row);
    await (line === undefined ? tellUnmeasured() : dashboard.show(name, line));
  };
  const dropBaseline = async (): Promise<void> => {
    await requests.clearBaseline();
  };

  const actions: Readonly<Record<string, (...given: never[]) => unknown>> = {
    // For the views' rows; not in the palette.
    "deepscope.open": async (row: LineArgument) => {
      const line = recordedOf(row);
      if (line !== undefined) {
        if (row.isPart === true) {
          callPaths.hold();
        } else {
          void callPaths.show(line); // at once: the cursor never reaches a line whose file is not here
        }
        await jumps.open(line);
      }
    },
    "deepscope.hotLines.copy": (row: Row) => hotLines.copy(row),
    "deepscope.hotLines.hide": (row: Row) => hotLines.hide(row),
    "deepscope.runs.select": (row: RunRow | TraceRow) => take(requests.selectTrace(chosenBy(row))),
    "deepscope.runs.delete": (row: TraceRow) => runs.delete(row),
    "deepscope.runs.reveal": (row: TraceRow) =>
      vscode.commands.executeCommand("revealInExplorer", vscode.Uri.file(row.trace.path)),
    "deepscope.runs.dashboard": (row: RunRow | TraceRow) => dashboard.open({ paths: pathsOf(row) }),
    "deepscope.runs.tensorboard": (row: RunRow | TraceRow) => tensorboard.open(pathsOf(row)),

    "deepscope.hotLines.groupBy": () => hotLines.chooseGroup(),
    "deepscope.hotLines.sortBy": () => hotLines.chooseMetric(),
    "deepscope.hotLines.showHidden": () => hotLines.showHidden(),
    "deepscope.callPaths.chooseDepth": () => callPaths.chooseDepth(),
    "deepscope.showTrace": (path: string) => take(requests.selectTrace({ path })),
    "deepscope.runs.newest": () => take(requests.selectTrace(null)),
    "deepscope.refresh": () => take(requests.reload()),
    "deepscope.useAsBaseline": (row?: RunRow | TraceRow) => take(requests.setBaseline(row === undefined ? null : chosenBy(row))),
    "deepscope.dropBaseline": dropBaseline,
    "deepscope.pickTrace": async () => {
      const chosen = await pickTrace(runs, session);
      if (chosen !== undefined) {
        await take(requests.selectTrace(chosen === null ? null : { path: chosen }));
      }
    },

    "deepscope.toggleHeat": () => {
      const settings = vscode.workspace.getConfiguration("deepscope.heat");
      return settings.update("enabled", !settings.get<boolean>("enabled", true), vscode.ConfigurationTarget.Global);
    },
    "deepscope.openFlameGraph": () => flame.open(),
    "deepscope.showInFlameGraph": async (row?: LineArgument) => {
      const line = await lineOf(row);
      await (line === undefined ? tellUnmeasured() : flame.open(line));
    },
    "deepscope.showLineCallPaths": async (row?: LineArgument) => {
      const line = await lineOf(row);
      await (line === undefined ? tellUnmeasured() : callPaths.reveal(line));
    },
    "deepscope.showLineCallers": async (row?: LineArgument) => {
      const line = await lineOf(row);
      await (line === undefined ? tellUnmeasured() : pickCaller(await requests.callers(line), jumps));
    },
    "deepscope.openDashboard": () => dashboard.open(),
    "deepscope.openDashboardInBrowser": () => dashboard.openInBrowser(),
    "deepscope.dashboard.back": () => dashboard.step("back"),
    "deepscope.dashboard.forward": () => dashboard.step("forward"),
    "deepscope.flame.showInDashboard": async (box: unknown) => {
      const line = flame.lineOf(box);
      await (line === undefined ? tellUnmeasured() : dashboard.show("lines", line));
    },
    "deepscope.showInDashboard": (row?: LineArgument) => showOn("lines", row),
    "deepscope.showInTimeline": (row?: LineArgument) => showOn("timeline", row),
    "deepscope.openTensorBoard": () => tensorboard.open(),
    "deepscope.runFile": (uri?: vscode.Uri) => runner.runFile(uri),
    "deepscope.attach": () => attacher.attach(),

    "deepscope.restartServer": () => session.start("asked"),
    "deepscope.setUp": () => session.offer(),
    "deepscope.showLogs": () => parts.log.show(),
    "deepscope.selectInterpreter": () => pickInterpreter(parts.interpreters, session.interpreter?.python),
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

async function tellUnmeasured(): Promise<void> {
  await notify("info", "DeepScope: nothing was measured on this line.");
}

function recordedOf(row: LineArgument | undefined): RecordedLine | undefined {
  const line = row?.line ?? row?.path ?? row?.gone;
  return line === undefined ? undefined : { file: line.file, line: line.line };
}

