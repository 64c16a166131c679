/** The quick pick of a trace. */

import * as vscode from "vscode";
import { plain } from "./status/words";
import type { Chosen } from "./server/requests";
import type { Session } from "./session";
import type { RunsView } from "./views/runsView";

/** The trace chosen; null for the newest, whichever that is; undefined for no choice. */
export async function pickTrace(runs: RunsView, session: Session): Promise<Chosen | null | undefined> {
  await runs.refresh();
  type Item = vscode.QuickPickItem & { readonly path: string | null };
  const newest: Item = { label: "$(sync) Newest trace", description: "follow new runs as they come", path: null };
  const items = runs.traces.map(
    ({ run, row }): Item => ({
      label: `${row.trace.selected ? "$(check) " : ""}${plain(run === row ? row.label : `${run.label} · ${row.label}`)}`,
      description: plain(row.description),
      detail: plain(row.trace.path),
      path: row.trace.path,
    }),
  );
  const browse: Item = { label: "$(folder-opened) Browse…", description: "a trace file anywhere", path: "" };
  const title = session.status?.trace == null ? "Show a trace" : "Show another trace";
  const chosen = await vscode.window.showQuickPick([newest, ...items, browse], { title, matchOnDescription: true, matchOnDetail: true });
  if (chosen?.path !== "") {
    return chosen?.path == null ? chosen?.path : { path: chosen.path };
  }
  const files = await vscode.window.showOpenDialog({ title, filters: { Traces: ["json", "gz"] }, canSelectMany: false });
  return files?.[0] && { path: files[0].fsPath };
}
