/** Links in Markdown that run a command. */

import { object, natural, text, type Reader } from "../shape";

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
