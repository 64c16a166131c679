/** How long tests wait. A machine with two cores that does other work meanwhile takes its time, and a wait ends when its end has come. */

/** For what a test names. */
export const WAIT_MS = 180_000;
/** For one attempt where there may be another. */
export const ATTEMPT_MS = 20_000;
/** For a program that is recorded meanwhile. */
export const RECORDING_MS = 480_000;

/** Tries until an attempt ends without an error. Each has its own limit; the last error counts. */
export async function attempts(one: () => Promise<void>, between: () => Promise<void> = () => Promise.resolve()): Promise<void> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    try {
      return await one();
    } catch (error) {
      if (Date.now() > end) {
        throw error;
      }
      console.warn(`tried once more: ${String(error).split("\n", 1)[0] ?? ""}`);
      await between();
    }
  }
}
