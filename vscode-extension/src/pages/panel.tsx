/** The dashboard's pages in an editor's panel. */

import { draw } from "./app/App";
import { go, parsed, Trail, useAddress } from "./app/address";
import { Extension, PanelSource } from "./source/panel";
import type { JSX } from "preact";
import { linkToRun } from "./app/runs";
import "./panel/panel.css";

const vscode = acquireVsCodeApi();

const extension = new Extension(
  (message) => vscode.postMessage(message),
  (message) => {
    switch (message.type) {
      case "start":
        begin(message.hash);
        break;
      case "go":
        go(message.hash);
        break;
      case "changed":
        drawAnew(message.isOther || isNewer);
        break;
      case "back":
        step(-1);
        break;
      case "forward":
        step(1);
        break;
    }
  },
);

let trail = new Trail("");
let isNewer = false;

/** Draws the pages where the reader left them. */
function begin(hash: string): void {
  window.history.replaceState(null, "", hash === "" ? "#/" : hash);
  trail = new Trail(window.location.hash);
  drawAnew();
}

/** Asks all anew. While a run is chosen in the pages a bar leads to the one that the editor shows, if that is another. */
function drawAnew(isOther = false): void {
  isNewer = isOther && parsed(window.location.hash).words["run"] !== undefined;
  draw(new PanelSource(extension), isNewer ? <Newer forget={() => drawAnew()} /> : null);
}

function step(by: -1 | 1): void {
  const place = trail.step(by);
  if (place !== undefined) {
    go(place, false);
  }
}

window.addEventListener("message", (event: MessageEvent<unknown>) => {
  if (event.origin === window.origin) {
    extension.receive(event.data);
  }
});
window.addEventListener("hashchange", (event) => {
  const { hash } = window.location;
  if (event.isTrusted) {
    trail.visit(hash);
  } else {
    trail.amend(hash);
  }
  vscode.setState({ hash });
  extension.say({ type: "at", hash });
});
// The editor takes clicks on links for its own: those of the pages stop here.
document.getElementById("root")?.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const to = link?.getAttribute("href") ?? "";
  if (to.startsWith("#")) {
    event.stopPropagation();
    if (!event.defaultPrevented) {
      event.preventDefault();
      go(to);
    }
  }
});

extension.say({ type: "ready" });

/** What stands above the pages when the editor shows another run than they do. */
function Newer({ forget }: { readonly forget: () => void }): JSX.Element | null {
  const address = useAddress();
  if (address.words["run"] === undefined) {
    return null;
  }
  const follow = (): void => {
    go(linkToRun(address, { id: "" }));
    forget();
  };
  return (
    <div class="newer" role="status">
      <span>The editor shows another run now.</span>
      <button type="button" onClick={follow}>
        Show it
      </button>
      <button type="button" onClick={forget}>
        Stay here
      </button>
    </div>
  );
}
