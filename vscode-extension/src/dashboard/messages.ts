/** What the dashboard's pages in a panel and the extension say. */

import { flag, literal, matching, natural, object, text, union } from "../shape";

const question = matching(/^[a-z][A-Za-z0-9_]{0,60}$/, "a question's name");
/** As `URLSearchParams` writes one. */
const query = matching(/^[\w.~*%&=+-]*$/, "a query");
/** Where the pages are: `#/lines?file=…&line=12`; "" is the first page. */
const hash = matching(/^(#\/.{0,100000})?$/, "an address");
/** As recorded. */
const file = matching(/^[^\0]{1,100000}$/, "a file's name");

/** From the pages to the extension. */
export const fromPages = union({
  ready: object({ type: literal("ready") }),
  ask: object({ type: literal("ask"), id: natural, name: question, query }),
  open: object({ type: literal("open"), file, line: natural }),
  at: object({ type: literal("at"), hash }),
});
export type FromPages = ReturnType<typeof fromPages>;

/** From the extension to the pages. */
export const toPages = union({
  /** `body` is JSON. */
  answer: object({ type: literal("answer"), id: natural, status: natural, body: text }),
  /** The answer to `ready`. */
  start: object({ type: literal("start"), hash }),
  go: object({ type: literal("go"), hash }),
  /** There are other traces than before; with `isOther` the editor shows another run. */
  changed: object({ type: literal("changed"), isOther: flag }),
  back: object({ type: literal("back") }),
  forward: object({ type: literal("forward") }),
});
export type ToPages = ReturnType<typeof toPages>;

/** What is kept of a panel while its window is closed. */
export const keptState = object({ hash });
