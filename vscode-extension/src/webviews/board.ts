/** TensorBoard's panel: TensorBoard in a frame; clicks on its frames and the editor's keys go on to the extension. */

import { readEditorCommand, readFrameClick, type FromPage } from "../tensorboard/messages";
import "./board.css";

const vscode = acquireVsCodeApi();
const board = document.getElementById("board");
const address = document.body.dataset["url"];
const folder = document.getElementById("place");

if (board instanceof HTMLIFrameElement && address !== undefined) {
  const { origin } = new URL(address);
  window.addEventListener("message", (event: MessageEvent<unknown>) => {
    // Under a proxy TensorBoard may share its origin with the editor: the sender must also sit inside the frame.
    if (event.origin !== origin || !isInside(event.source, board)) {
      return;
    }
    const click = readFrameClick(event.data);
    const command = readEditorCommand(event.data);
    if (click !== undefined) {
      post({ type: "open", filename: click.filename, line: click.line });
    } else if (command !== undefined) {
      post({ type: "command", command });
    }
  });
  board.src = address;
}
if (folder !== null) {
  folder.textContent = document.body.dataset["folder"] ?? "";
}
document.getElementById("browser")?.addEventListener("click", () => post({ type: "browser" }));

/** TensorBoard itself, the plug-in in the frame within it, or a frame of that. */
function isInside(source: MessageEventSource | null, frame: HTMLIFrameElement): boolean {
  let page = source !== null && "parent" in source ? source : null;
  for (let depth = 0; depth < 3 && page !== null; depth += 1) {
    if (page === frame.contentWindow) {
      return true;
    }
    page = page === page.parent ? null : page.parent;
  }
  return false;
}

function post(message: FromPage): void {
  vscode.postMessage(message);
}
