/** The keys that open the editor's own lists while TensorBoard has the focus. Pages ask for them, so the list is closed. */

export const EDITOR_COMMANDS = ["workbench.action.showCommands", "workbench.action.quickOpen"] as const;
export type EditorCommand = (typeof EDITOR_COMMANDS)[number];

export interface Key {
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
