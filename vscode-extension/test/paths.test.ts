import { expect, it } from "vitest";
import { isBelowAny } from "../src/paths";

it.each([
  ["/w/a", true],
  ["/w/a/b.py", true],
  ["/w/ab", false],
  ["/w/a/../b", false],
  ["/w/a/..b", true],
  ["/", false],
])("%s lies below /w/a: %s", (file, answer) => expect(isBelowAny(file, ["/w/a"])).toBe(answer));
