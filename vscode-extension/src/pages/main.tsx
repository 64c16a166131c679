/** The dashboard's pages in a browser: from a server, in TensorBoard, or as a file of their own. */

import { draw } from "./app/App";
import { EmbeddedSource } from "./source/embedded";
import { HttpSource, keepAddress, TensorBoardSource } from "./source/http";
import type { Source } from "./source/source";

function sourceOf(): Source {
  const own = document.getElementById("answers")?.textContent;
  if (own != null) {
    return new EmbeddedSource(own);
  }
  if (document.body.dataset["door"] === "tensorboard") {
    keepAddress();
    return new TensorBoardSource();
  }
  return new HttpSource("./api/", new URLSearchParams(window.location.search).get("token") ?? "");
}

document.getElementById("root")?.replaceChildren();
draw(sourceOf());
