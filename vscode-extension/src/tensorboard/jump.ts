/** From a frame in TensorBoard to the line in an editor. */

import * as vscode from "vscode";
import { notify } from "../notify";
import { openPlace } from "../places";
import type { Requests } from "../server/requests";
import type { FrameClick } from "./messages";
import { isLocalAbsolute } from "./paths";

/** Opens the line of a frame. */
export async function jump(click: FrameClick, requests: Requests, viewColumn: vscode.ViewColumn): Promise<void> {
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
