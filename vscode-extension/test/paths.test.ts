import { expect, it } from "vitest";
import { isBelowAny, parentOf } from "../src/paths";

it.each([
  ["/w/a", true],
  ["/w/a/b.py", true],
  ["/w/ab", false],
  ["/w/a/../b", false],
  ["/w/a/..b", true],
  ["/", false],
])("%s lies below /w/a: %s", (file, answer) => expect(isBelowAny(file, ["/w/a"])).toBe(answer));

it.each([
  ["/a/b.json", "/a"],
  ["C:\\a\\b.json", "C:\\a"],
  ["b.json", "b.json"],
])("%s lies in %s", (file, folder) => expect(parentOf(file)).toBe(folder));
