/** The names of slices, each once, with what drawing needs of each: its colour's number, whether a search finds it, how it is cut. */

export class Names {
  readonly texts: string[] = [];
  /** A number that is the same for a name in each session, which colours are taken by. */
  readonly hashes: number[] = [];
  private readonly numbers = new Map<string, number>();
  private wanted = "";
  private told: ReadonlySet<string> = new Set();
  private found: boolean[] = [];

  /** The number of a name. */
  number(text: string): number {
    let number = this.numbers.get(text);
    if (number === undefined) {
      number = this.texts.length;
      this.numbers.set(text, number);
      this.texts.push(text);
      this.hashes.push(hashOf(text));
    }
    return number;
  }

  /** Looks for names that hold a text, whatever its case; those that the server told count as well. */
  look(text: string, told: ReadonlySet<string> = new Set()): void {
    if (text.toLowerCase() !== this.wanted || told !== this.told) {
      this.wanted = text.toLowerCase();
      this.told = told;
      this.found = [];
    }
  }

  isFound(number: number): boolean {
    const text = this.texts[number] ?? "";
    return (this.found[number] ??= text.toLowerCase().includes(this.wanted) || this.told.has(text));
  }
}

/** FNV-1a of the name without its digits: `gemm_128x64` and `gemm_64x64` have one colour. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const char of text.replace(/\d+/g, "").slice(0, 200)) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash;
}

type Measure = (text: string) => number;

const ELLIPSIS = "…";

/** Words cut to the width that there is, without asking the canvas for each: widths of characters are kept. */
export class Labels {
  private readonly widths = new Map<string, number>();
  private readonly whole = new Map<string, number>();

  constructor(private readonly measure: Measure) {}

  /** The text, or as much of its beginning as fits with an ellipsis; "" where not even some characters fit. */
  fitted(text: string, width: number): string {
    if (this.width(text) <= width) {
      return text;
    }
    let rest = width - this.of(ELLIPSIS);
    let shown = "";
    for (const char of text) {
      rest -= this.of(char);
      if (rest < 0) {
        break;
      }
      shown += char;
    }
    return shown.length < 2 ? "" : `${shown.trimEnd()}${ELLIPSIS}`;
  }

  private width(text: string): number {
    let width = this.whole.get(text);
    if (width === undefined) {
      width = 0;
      for (const char of text.length > 400 ? text.slice(0, 400) : text) {
        width += this.of(char);
      }
      this.whole.set(text, width);
    }
    return width;
  }

  private of(char: string): number {
    let width = this.widths.get(char);
    if (width === undefined) {
      width = this.measure(char);
      this.widths.set(char, width);
    }
    return width;
  }
}
