/** What a line's place is called in a row: short, and as it stands now. */

export interface NamedPlace {
  /** As recorded. */
  readonly file: string;
  readonly line: number;
  readonly uri?: string | null;
  readonly currentLine?: number | null;
}

/** `model.py:42`; a notebook's cell has the notebook's name, since its own is a number. */
export function placeName({ file, line, uri, currentLine }: NamedPlace): string {
  const notebook = /^vscode-notebook-cell:[^#?]*?([^/#?]+)(?:[#?]|$)/.exec(uri ?? "")?.[1];
  return `${notebook === undefined ? baseName(file) : decoded(notebook)}:${currentLine ?? line}`;
}

/** A name of this length leaves room for four digits in a side bar of the usual width, also beside arrows that unfold rows. */
const NAME_LENGTH = 12;
const NAME_END = 5;

/** A place for a row: the middle of a long file name is left out, so that a narrow side bar does not cut the line number off. */
export function shortPlace(place: string): string {
  const [, name = "", line = ""] = /^(.*)(:\d+)$/.exec(place) ?? [];
  const start = NAME_LENGTH - 1 - NAME_END;
  return name.length > NAME_LENGTH ? `${name.slice(0, start)}…${name.slice(-NAME_END)}${line}` : place;
}

/** The last part of a path of any system. */
export function baseName(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
