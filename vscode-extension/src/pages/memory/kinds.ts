/** What held memory: each kind always has the same colour. */

import type { HeldPart } from "../contract";
import type { StackPart } from "../parts/StackBar";

const TONES: Readonly<Record<string, string>> = {
  parameters: "tone0",
  gradients: "tone1",
  "optimizer state": "tone2",
  inputs: "tone3",
  activations: "tone4",
  temporaries: "tone5",
  unknown: "tone7",
};

export function stackOf(held: readonly HeldPart[]): StackPart[] {
  return held.map(({ kind, sizeBytes }) => ({ name: kind, value: sizeBytes, tone: TONES[kind] ?? "tone6" }));
}

/** A moment on the trace's clock, of which JavaScript's numbers do not hold all digits. */
export function absolute(begin: string, atNs: number): string {
  return String(BigInt(begin) + BigInt(Math.round(atNs)));
}

/** The other way. */
export function relative(begin: string, at: string): number {
  return Number(BigInt(at) - BigInt(begin));
}
