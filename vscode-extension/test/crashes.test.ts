import { expect, it } from "vitest";
import { CrashPolicy } from "../src/server/crashes";

it("a server that crashes is started again after longer and longer pauses, then no more", () => {
  const policy = new CrashPolicy(() => 0);
  expect([1, 2, 3, 4, 5].map(() => policy.crashed())).toEqual([500, 1000, 2000, 4000, undefined]);
});

it("crashes long ago do not count", () => {
  let now = 0;
  const policy = new CrashPolicy(() => now);
  policy.crashed();
  policy.crashed();
  now = 3 * 60_000;
  expect(policy.crashed()).toBe(500);
});

it("a start that the user asked for begins anew", () => {
  const policy = new CrashPolicy(() => 0);
  policy.crashed();
  policy.forget();
  expect(policy.count).toBe(0);
  expect(policy.crashed()).toBe(500);
});
