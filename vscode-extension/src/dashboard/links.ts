/** What hands a line to a command: a link in Markdown, a row of a view. */

import { recordedLine, type RecordedLine } from "../server/contract";
import { natural, object, readOr, text, type Reader } from "../shape";

/** A line of a text in the editor, from 1. */
export interface TextPlace {
  readonly uri: string;
  readonly line: number;
}

export const textPlace: Reader<TextPlace> = object({ uri: text, line: natural });

/** A link of constant words; nothing in the place ends it early. */
export function commandLink(words: string, command: string, place: TextPlace): string {
  const argument = encodeURIComponent(JSON.stringify([place])).replace(/[()'*!~]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
  return `[${words}](command:${command}?${argument})`;
}

/** The line that a row of a view stands for; undefined for a row of none, and for what else a menu hands over (a `Uri` has a `path`, too). */
export function recordedOf(row: { readonly line?: unknown; readonly path?: unknown; readonly gone?: unknown } | null | undefined): RecordedLine | undefined {
  return readOr(recordedLine, row?.line) ?? readOr(recordedLine, row?.path) ?? readOr(recordedLine, row?.gone);
}
