import { describe, expect, it } from "vitest";
import { questions } from "../src/pages/contract";
import { EmbeddedSource, keyOf } from "../src/pages/source/embedded";
import { ShapeError } from "../src/shape";
import keys from "./answerKeys.json";

const runs = { runs: [], version: "1" };

describe("answers in the page's own file", () => {
  it("are found under the question's name and words, in any order", async () => {
    const source = new EmbeddedSource(JSON.stringify({ "runs?": runs, "header?rank=1&step=0": {} }));
    expect(await source.ask(questions.runs, {})).toEqual(runs);
    expect(source.has("header", { step: 0, rank: 1, run: "", phase: undefined })).toBe(true);
    expect(source.has("header", { step: 0 })).toBe(false);
    expect(await new EmbeddedSource(JSON.stringify({ a: runs, "runs?": "a" })).ask(questions.runs, {})).toEqual(runs);
  });

  it("are checked like those of a server, and what is missing says where it is", async () => {
    const source = new EmbeddedSource('{"runs?": {"runs": "none"}}');
    await expect(source.ask(questions.runs, {})).rejects.toThrow(ShapeError);
    await expect(source.ask(questions.findings, {})).rejects.toThrow("deepscope view");
  });

  it.each(["[1]", '{"runs?": {"ru', ""])("that end early or are something else say that the file is damaged (%s)", async (text) => {
    await expect(new EmbeddedSource(text).ask(questions.runs, {})).rejects.toThrow("This file is damaged");
  });

  it("are not found in what every object has", () => {
    const source = new EmbeddedSource('{"__proto__": 1}');
    expect(source.has("toString", {})).toBe(false);
    expect(source.has("constructor", {})).toBe(false);
  });

  it.each(keys)("bear the name $key, as in Python", ({ name, words, key }) => {
    expect(keyOf(name, words)).toBe(key);
  });

  it("have no lone surrogates in their names, as in Python", () => {
    expect(keyOf("line", { file: "a\ud800b" })).toBe("line?file=a%EF%BF%BDb");
  });
});
