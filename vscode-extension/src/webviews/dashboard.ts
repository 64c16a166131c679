/** The dashboard's page: TensorBoard in a frame; clicks on its frames go on to the extension. */

import { readFrameClick, type FromPage } from "../dashboard/messages";
import "./dashboard.css";

const vscode = acquireVsCodeApi();
const board = document.getElementById("board");
const address = document.body.dataset["url"];
const folder = document.getElementById("place");

if (board instanceof HTMLIFrameElement && address !== undefined) {
  const { origin } = new URL(address);
  window.addEventListener("message", (event: MessageEvent<unknown>) => {
    // Under a proxy TensorBoard may share its origin with the editor: the sender must also sit inside the frame.
    const click = event.origin === origin && isInside(event.source, board) ? readFrameClick(event.data) : undefined;
    if (click !== undefined) {
      post({ type: "open", filename: click.filename, line: click.line });
    }
  });
  board.src = address;
}
if (folder !== null) {
  folder.textContent = document.body.dataset["folder"] ?? "";
}
document.getElementById("browser")?.addEventListener("click", () => post({ type: "browser" }));

/** TensorBoard itself, or the plug-in in the frame within it. */
function isInside(source: MessageEventSource | null, frame: HTMLIFrameElement): boolean {
  const inner = frame.contentWindow;
  return inner !== null && source !== null && (source === inner || ("parent" in source && source.parent === inner));
}

function post(message: FromPage): void {
  vscode.postMessage(message);
}
