const NANOSECONDS = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 };

/** The nanoseconds of the first time in a text: `1.38 s in steps 2–4`. */
export function durationNs(words: string): number {
  const [, amount, unit] = /([\d.]+)[ \u00a0](ns|µs|ms|s)\b/.exec(words) ?? [];
  return Number(amount) * NANOSECONDS[unit as keyof typeof NANOSECONDS];
}
