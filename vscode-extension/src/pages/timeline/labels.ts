/** Words cut to the width that there is, without asking the canvas for each: widths of characters are kept. */

type Measure = (text: string) => number;

const ELLIPSIS = "…";

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
