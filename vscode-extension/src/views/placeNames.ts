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
