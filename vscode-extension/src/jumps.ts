/** From a line of a trace to the editor. The click asks where the line stands: texts change after a view was drawn. */

import * as vscode from "vscode";
import { notify } from "./notify";
import { openPlace } from "./places";
import type { Elsewhere } from "./elsewhere";
import type { RecordedLine } from "./server/contract";
import type { Requests } from "./server/requests";
import { plain } from "./status/words";

interface JumpOptions {
  readonly viewColumn?: vscode.ViewColumn;
}

const WORDS_MS = 6000;
const LOCATE = "Locate Folder…";

export class Jumps implements vscode.Disposable {
  private readonly mapped = new vscode.EventEmitter<void>();
  /** A folder was found: files are here that were not. */
  readonly onMapped = this.mapped.event;

  constructor(
    private readonly requests: Requests,
    private readonly elsewhere: Elsewhere,
  ) {}

  /** Opens a recorded line where it stands now; where its file is not here, as it was recorded. */
  async open(line: RecordedLine, options: JumpOptions = {}): Promise<void> {
    const found = await this.requests.locate(line);
    if (found === null) {
      void this.offerToLocate(line, await this.elsewhere.show(line, options), options).catch(tell);
      return;
    }
    await openPlace(found, options);
    if (found.standing === "gone") {
      const words = `DeepScope: the line that was measured is no longer there (it was line ${line.line})`;
      void vscode.window.setStatusBarMessage(plain(words), WORDS_MS);
    }
  }

  /** The same for a line of any trace: one that the editor does not show may name a file that is here. */
  async openNamed(line: RecordedLine, options: JumpOptions = {}): Promise<void> {
    const found = (await this.requests.locate(line)) === null ? await this.requests.resolvePath(line.file, line.line) : null;
    await (found === null ? this.open(line, options) : openPlace(found, options));
  }

  dispose(): void {
    this.mapped.dispose();
  }

  private async offerToLocate(line: RecordedLine, isShown: boolean, options: JumpOptions): Promise<void> {
    const words = `DeepScope: ${line.file} was not found here${isShown ? "; this is its text as it ran" : ""}.`;
    if ((await notify("info", words, LOCATE)) !== LOCATE) {
      return;
    }
    const folders = await vscode.window.showOpenDialog({
      title: `Where is ${line.file}?`,
      openLabel: "Look Here",
      canSelectFiles: false,
      canSelectFolders: true,
      canSelectMany: false,
    });
    const folder = folders?.[0];
    if (folder !== undefined) {
      await this.requests.mapFolder(line.file, folder.fsPath);
      this.mapped.fire();
      await this.open(line, options);
    }
  }
}

function tell(error: unknown): void {
  void notify("error", `DeepScope: ${error instanceof Error ? error.message : String(error)}`);
}
