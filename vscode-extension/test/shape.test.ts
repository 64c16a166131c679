import { describe, expect, it } from "vitest";
import { dictionary, finite, list, literal, natural, nullable, object, read, readOr, ShapeError, text, union, withDefault } from "../src/shape";

describe("values from outside", () => {
  const point = object({ name: text, at: natural, note: nullable(text), weight: withDefault(finite, 1) });

  it("keep only the fields that are asked for", () => {
    const given = { name: "a", at: 0, note: undefined, more: "x" };
    expect(read(point, given, "point")).toEqual({ name: "a", at: 0, note: null, weight: 1 });
  });

  it.each([
    [{ name: 1, at: 0 }, "point.name should be a string and is 1"],
    [{ name: "a", at: -1 }, "point.at should be a whole number and is -1"],
    [{ name: "a", at: 0.5 }, "point.at should be a whole number and is 0.5"],
    [[], "point should be an object and is []"],
    [null, "point should be an object and is null"],
  ])("are refused with their place: %j", (given, message) => {
    expect(() => read(point, given, "point")).toThrow(new ShapeError(message));
  });

  it("are refused inside lists and dictionaries", () => {
    expect(() => read(list(text), ["a", 2], "names")).toThrow("names[1] should be a string");
    expect(() => read(dictionary(finite), { a: Number.NaN }, "numbers")).toThrow("numbers.a should be a number");
  });

  it("of a union are read by their type, and no inherited name is one", () => {
    const message = union({ go: object({ type: literal("go"), line: natural }), stop: object({ type: literal("stop") }) });
    expect(readOr(message, { type: "go", line: 3 })).toEqual({ type: "go", line: 3 });
    expect(readOr(message, { type: "toString" })).toBeUndefined();
    expect(readOr(message, { type: "go", line: "3" })).toBeUndefined();
  });
});
