/** The commands of the palette and the menus, one line for each. */

import * as vscode from "vscode";
import { askAboutLine } from "./assistant";
import type { DashboardPanel } from "./dashboard/panel";
import type { Jumps } from "./jumps";
import { recordedOf, textPlace } from "./dashboard/links";
import { pickInterpreter } from "./interpreter/pick";
import type { Interpreters } from "./interpreter/resolve";
import { notify } from "./notify";
import { cursorPlace } from "./places";
import type { Attacher } from "./run/attacher";
import type { Notices } from "./run/notices";
import type { Runner } from "./run/runner";
import { recordedAt } from "./elsewhere";
import type { RecordedLine, Status } from "./server/contract";
import type { LanguageServer } from "./server/languageServer";
import type { Requests } from "./server/requests";
import type { Session } from "./session";
import { pickTrace, type RunsView } from "./views/runsView";
import { read, readOr } from "./shape";
import type { TensorBoardPanel } from "./tensorboard/panel";
import type { CallPathsView } from "./views/callPathsView";
import type { Row } from "./views/hotLinesRows";
import type { HotLinesView } from "./views/hotLinesView";
import { chosenBy, pathsOf, type RunRow, type TraceRow } from "./views/runRows";

interface Parts {
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
  const { session, requests, jumps, hotLines, callPaths, runs, dashboard, tensorboard, runner, attacher, notices } = parts;

  const take = async (answer: Promise<Status>): Promise<void> => {
    notices.expectChange();
    session.take(await answer);
  };
  /** The line of a row; without one that which the cursor is on. */
  const lineOf = async (row: LineArgument | undefined): Promise<RecordedLine | undefined> => {
    const place = readOr(textPlace, row) ?? recordedOf(row) ?? cursorPlace();
    return place === undefined || "file" in place ? place : recordedAt(place, requests);
  };
  /** Shows a line on a page of the dashboard. */
  const showOn = async (name: "lines" | "timeline", row: LineArgument | undefined): Promise<void> => {
    const line = await lineOf(row);
    await (line === undefined ? tellUnmeasured() : dashboard.show(name, line));
  };
  /** Compares with a row's traces, or with what is shown now; stops where that is compared with already. */
  const toggleBaseline = async (row: RunRow | TraceRow | null | undefined): Promise<void> => {
    const { baseline, comparison } = session.status ?? {};
    const isCompared =
      row == null ? baseline != null : comparison?.isChosen === true && pathsOf(row).some((path) => baseline?.paths.includes(path));
    await (isCompared ? requests.clearBaseline() : take(requests.setBaseline(row == null ? null : chosenBy(row))));
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
    // For hovers.
    "deepscope.askAboutLine": (given: unknown) => askAboutLine(read(textPlace, given, "a place"), requests),
    "deepscope.hotLines.copy": (row: Row) => hotLines.copy(row),
    "deepscope.hotLines.hide": (row: Row) => hotLines.hide(row),
    "deepscope.runs.delete": (row: TraceRow) => runs.delete(row),
    "deepscope.runs.reveal": (row: TraceRow) =>
      vscode.commands.executeCommand("revealInExplorer", vscode.Uri.file(row.trace.path)),

    "deepscope.hotLines.groupBy": () => hotLines.chooseGroup(),
    "deepscope.hotLines.sortBy": () => hotLines.chooseMetric(),
    "deepscope.showHidden": async () => {
      await hotLines.showHidden();
      await requests.unhideFindings();
    },
    "deepscope.callPaths.chooseDepth": () => callPaths.chooseDepth(),
    "deepscope.toggleBaseline": toggleBaseline,
    "deepscope.pickTrace": async (given?: RunRow | TraceRow | string | null) => {
      const chosen = typeof given === "string" ? { path: given } : given == null ? await pickTrace(runs, session) : chosenBy(given);
      if (chosen !== undefined) {
        await take(requests.selectTrace(chosen));
      }
    },

    "deepscope.toggleHeat": () => {
      const settings = vscode.workspace.getConfiguration("deepscope");
      return settings.update("heat", !settings.get<boolean>("heat", true), vscode.ConfigurationTarget.Global);
    },
    "deepscope.showInFlameGraph": async (row?: LineArgument) => dashboard.showFlameGraph(await lineOf(row)),
    "deepscope.showLineCallPaths": async (row?: LineArgument) => {
      const line = await lineOf(row);
      await (line === undefined ? tellUnmeasured() : callPaths.reveal(line));
    },
    "deepscope.openDashboard": (row?: RunRow | TraceRow | Row) => dashboard.open({ paths: tracesOf(row) }),
    "deepscope.openDashboardInBrowser": () => dashboard.openInBrowser(),
    // The keys say "forward"; a menu cannot.
    "deepscope.dashboard.step": (to?: unknown) => dashboard.step(to === "forward" ? "forward" : "back"),
    "deepscope.showInDashboard": (row?: LineArgument) => showOn("lines", row),
    "deepscope.showInTimeline": (row?: LineArgument) => showOn("timeline", row),
    "deepscope.openTensorBoard": (row?: RunRow | TraceRow | Row) => tensorboard.open(tracesOf(row)),
    "deepscope.runFile": (uri?: vscode.Uri) => runner.runFile(uri),
    "deepscope.attach": () => attacher.attach(),

    "deepscope.restart": () => session.start("asked"),
    "deepscope.showLogs": () => parts.log.show(),
    "deepscope.selectInterpreter": () => pickInterpreter(parts.interpreters, session.interpreter?.python, () => session.install()),
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

/** The traces of a row of Runs; undefined for what is shown. A button in a view's title gets the row that has the focus, of whichever view. */
function tracesOf(row: RunRow | TraceRow | Row | undefined | null): string[] | undefined {
  return row != null && "kind" in row ? pathsOf(row) : undefined;
}

