/** How often a server that crashes is started again: each time after a longer pause, a few times in all. */

const PAUSES_MS = [500, 1_000, 2_000, 4_000] as const;
/** Crashes further apart than this have nothing to do with each other. */
const WINDOW_MS = 3 * 60_000;

export class CrashPolicy {
  private times: number[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  /** Counts a crash; the pause before the next start, or undefined when it has crashed too often. */
  crashed(): number | undefined {
    const now = this.now();
    this.times = [...this.times.filter((time) => now - time < WINDOW_MS), now];
    return PAUSES_MS[this.times.length - 1];
  }

  get count(): number {
    return this.times.length;
  }

  /** Forgets all crashes, when the user asks for a start. */
  forget(): void {
    this.times = [];
  }
}
