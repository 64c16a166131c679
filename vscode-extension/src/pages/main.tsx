/** The dashboard's pages: the same behind each door. */

import { render, type JSX } from "preact";
import { App } from "./app/App";
import { EmbeddedSource } from "./source/embedded";
import { HttpSource } from "./source/http";
import type { Source } from "./source/source";
import { SourceContext } from "./source/useAnswer";
import "./style/tokens.css";
import "./style/layout.css";
import "./style/parts.css";
import "./overview/overview.css";

function sourceOf(): Source {
  const own = document.getElementById("answers")?.textContent;
  if (own != null) {
    return new EmbeddedSource(JSON.parse(own));
  }
  return new HttpSource("./api/", new URLSearchParams(window.location.search).get("token") ?? "");
}

/** The pages, or why there are none. */
function shown(): JSX.Element {
  try {
    return (
      <SourceContext.Provider value={sourceOf()}>
        <App />
      </SourceContext.Provider>
    );
  } catch (error) {
    return (
      <div class="failure" role="alert">
        <h3>This file is damaged</h3>
        <p>{error instanceof Error ? error.message : String(error)}</p>
      </div>
    );
  }
}

const root = document.getElementById("root");
if (root !== null) {
  root.replaceChildren();
  render(shown(), root);
}
