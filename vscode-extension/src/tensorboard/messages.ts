/** What torch-tb-profiler says when a frame is clicked, and what the panel's page and the extension say. */

import { literal, natural, object, oneOf, readOr, text, union } from "../shape";
import { EDITOR_COMMANDS, type EditorCommand } from "./keys";

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
  const { filename = "", line = 0 } = readOr(frameClick, given) ?? {};
  const isName = filename !== "" && filename.length <= FILENAME_LIMIT && !filename.includes("\0");
  return isName ? { filename, line: line + 1 } : undefined;
}

/** What `webviews/tensorboard.ts` says in TensorBoard's pages when a key of the editor's is pressed there. */
const editorKey = object({ editorCommand: oneOf(...EDITOR_COMMANDS) });

/** The command that a key pressed in TensorBoard asks for; undefined for any other message. */
export function readEditorCommand(given: unknown): EditorCommand | undefined {
  return readOr(editorKey, given)?.editorCommand;
}

/** From the page to the extension. */
export const fromPage = union({
  open: object({ type: literal("open"), filename: text, line: natural }),
  browser: object({ type: literal("browser") }),
  command: object({ type: literal("command"), command: oneOf(...EDITOR_COMMANDS) }),
});
export type FromPage = ReturnType<typeof fromPage>;
