/** What torch-tb-profiler and the keys in TensorBoard say, and what the panel's page and the extension say. */

import { literal, natural, object, oneOf, readOr, text, union } from "../shape";

/** They open the editor's own lists while TensorBoard has the focus. Pages ask for them, so the list is closed. */
const EDITOR_COMMANDS = ["workbench.action.showCommands", "workbench.action.quickOpen"] as const;
type EditorCommand = (typeof EDITOR_COMMANDS)[number];

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

interface Key {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
}

/** What a key asks the editor for: F1 and Ctrl+Shift+P (Cmd on a Mac) for the commands, Ctrl+P for the files. */
export function editorCommand({ key, ctrlKey, metaKey, shiftKey, altKey }: Key): EditorCommand | undefined {
  const isChord = ctrlKey !== metaKey;
  if (altKey) {
    return undefined;
  }
  if (key === "F1") {
    return ctrlKey || metaKey || shiftKey ? undefined : "workbench.action.showCommands";
  }
  if (key.toLowerCase() === "p" && isChord) {
    return shiftKey ? "workbench.action.showCommands" : "workbench.action.quickOpen";
  }
  return undefined;
}
