/** A part of a whole that is shown as one bar. */

export interface StackPart {
  readonly name: string;
  readonly value: number;
  /** `tone0`, a class with a colour. */
  readonly tone: string;
}
