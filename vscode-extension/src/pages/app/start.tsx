/** Draws the pages. */

import { render, type ComponentChildren } from "preact";
import type { Source } from "../source/source";
import { SourceContext } from "../source/useAnswer";
import { App } from "./App";
import "../style/tokens.css";
import "../style/layout.css";
import "../style/parts.css";
import "../overview/overview.css";

/** Draws the pages with the answers of a source; called again, they follow another one. */
export function draw(source: Source, above: ComponentChildren = null): void {
  const root = document.getElementById("root");
  if (root !== null) {
    render(
      <SourceContext.Provider value={source}>
        {above}
        <App />
      </SourceContext.Provider>,
      root,
    );
  }
}
