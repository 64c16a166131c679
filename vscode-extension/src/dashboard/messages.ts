/** What torch-tb-profiler says when a frame is clicked, and what the dashboard's page and the extension say. */

import { literal, natural, object, text, union } from "../shape";

const FILENAME_LIMIT = 4096;

/**
 * torch-tb-profiler 0.4: `window.parent.parent.postMessage({filename, line: LINE - 1}, "*")`. `line` is 0-based: 0 is the
 * first line of a file, not the absence of one.
 */
const frameClick = object({ filename: text, line: natural });

export interface FrameClick {
  readonly filename: string;
  /** From 1. */
  readonly line: number;
}

/** A click on a frame, its line counted from 1; undefined for any other message. */
export function readFrameClick(given: unknown): FrameClick | undefined {
  let click;
  try {
    click = frameClick(given, "message");
  } catch {
    return undefined;
  }
  const isName = click.filename !== "" && click.filename.length <= FILENAME_LIMIT && !click.filename.includes("\0");
  return isName ? { filename: click.filename, line: click.line + 1 } : undefined;
}

/** From the page to the extension. */
export const fromPage = union({
  open: object({ type: literal("open"), filename: text, line: natural }),
  browser: object({ type: literal("browser") }),
});
export type FromPage = ReturnType<typeof fromPage>;
