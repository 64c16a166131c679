/** Added to TensorBoard's pages in the panel: keys that belong to the editor are told to it. */

import { editorCommand } from "../tensorboard/messages";

/** How many pages lie above this one in TensorBoard alone: torch-tb-profiler's is in a frame, its trace view in another. */
function depthInTensorBoard(): number {
  const { pathname } = window.location;
  return pathname.endsWith("/trace_embedding.html") ? 2 : pathname.includes("/data/plugin/") ? 1 : 0;
}

function above(): Window[] {
  const found: Window[] = [];
  for (let up: Window = window; up !== up.parent; up = up.parent) {
    found.push(up.parent);
  }
  return found;
}

const outside = above().slice(depthInTensorBoard());
if (outside.length > 0) {
  document.documentElement.dataset["editor"] = "vscode"; // DeepScope's own tab tells the editor of lines
  window.addEventListener(
    "keydown",
    (event) => {
      const command = editorCommand(event);
      if (command !== undefined) {
        event.preventDefault();
        event.stopImmediatePropagation();
        outside.forEach((page) => page.postMessage({ editorCommand: command }, "*"));
      }
    },
    true,
  );
}
