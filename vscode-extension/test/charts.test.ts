import { describe, expect, it } from "vitest";
import { arrayToDataTable, DataTable, seriesOf, shown } from "../src/webviews/charts/data";
import { axisOf, labelStep, marksOf, type Drawn } from "../src/webviews/charts/marks";
import { orderOf, slicesOf, spansOf } from "../src/webviews/charts/rows";
import { axis, position } from "../src/webviews/charts/ticks";

/** As torch-tb-profiler makes one. */
function table(columns: readonly { type: string; label: string; role?: string }[], rows: readonly (string | number | boolean | null)[][]): DataTable {
  const made = new DataTable();
  columns.forEach((column) => made.addColumn(column));
  made.addRows(rows);
  return made;
}

describe("the data of a chart", () => {
  it("is of numbers in the columns whose first value is one, where it comes as rows alone", () => {
    const made = arrayToDataTable([["Operator", "Baseline", "Exp"], ["mm", 3, null], ["add", 4, 5]]);
    expect(made.columns.map(({ type }) => type)).toEqual(["string", "number", "number"]);
    expect(seriesOf(made).map(({ label, values }) => [label, values])).toEqual([["Baseline", [3, 4]], ["Exp", [null, 5]]]);
  });

  it("keeps a column of tooltips with the numbers before it", () => {
    const made = table(
      [{ type: "string", label: "Step" }, { type: "number", label: "Kernel" }, { type: "string", label: "", role: "tooltip" }],
      [["4", 7, "<b>Step 4</b>"]],
    );
    expect(seriesOf(made)).toEqual([{ label: "Kernel", column: 1, values: [7], tooltips: ["<b>Step 4</b>"] }]);
  });

  it("takes cells as values, as objects, and what is no number for none", () => {
    const made = new DataTable();
    made.addColumn("string", "name");
    made.addColumn("number", "value");
    made.addRows([[{ v: "a", f: "A" }, { v: 2 }], ["b", Number.NaN], ["c"]]);
    expect(seriesOf(made)[0]?.values).toEqual([2, null, null]);
  });

  it("is shown with thousands apart and few digits", () => {
    expect([1234567.891, 0.000123456, 54.39, true, false, null, "aten::mm"].map(shown)).toEqual(["1,234,567.891", "0.000123", "54.39", "✔", "✗", "", "aten::mm"]);
  });
});

describe("an axis", () => {
  it.each([
    [0, 293_000, [0, 100_000, 200_000, 300_000]],
    [0, 0.8, [0, 0.2, 0.4, 0.6, 0.8]],
    [-3, 4, [-4, -2, 0, 2, 4]],
  ])("from %d to %d has round ticks", (low, high, ticks) => expect(axis(low, high).ticks).toEqual(ticks));

  it.each([[0, 0], [5, 5], [Infinity, -Infinity], [Number.NaN, 1]])("of nothing or of one value has an extent (%d, %d)", (low, high) => {
    const made = axis(low, high);
    expect(made.high).toBeGreaterThan(made.low);
    expect(made.ticks.every(Number.isFinite)).toBe(true);
  });

  it("places its ends at the ends", () => {
    const made = axis(0, 90);
    expect([position(made.low, made, 200), position(made.high, made, 200)]).toEqual([0, 200]);
  });

  it("leaves labels out where not all have room", () => {
    expect([labelStep(3, 50, 400), labelStep(100, 50, 500)]).toEqual([1, 10]);
  });
});

describe("marks", () => {
  const drawn = (kinds: readonly Drawn["kind"][], sides: readonly (0 | 1)[] = []): Drawn[] =>
    kinds.map((kind, at) => ({ kind, side: sides[at] ?? 0, series: { label: "", column: at + 1, values: [at + 1, 10], tooltips: [null, null] } }));

  it("lie on each other where they are stacked, and their axis holds the sum", () => {
    const stacked = drawn(["bars", "bars", "bars"]);
    const marks = marksOf(stacked, true);
    expect(marks.map((of) => of[0])).toEqual([{ row: 0, base: 0, top: 1 }, { row: 0, base: 1, top: 3 }, { row: 0, base: 3, top: 6 }]);
    expect(axisOf(stacked, marks, 0)?.high).toBe(30);
  });

  it("begin at 0 where they are not, and lines always do", () => {
    expect(marksOf(drawn(["bars", "bars"]), false).map((of) => of[0]?.base)).toEqual([0, 0]);
    expect(marksOf(drawn(["bars", "line"]), true).map((of) => of[0]?.base)).toEqual([0, 0]);
  });

  it("on the other side have an axis of their own", () => {
    const two = drawn(["bars", "line"], [0, 1]);
    expect(axisOf(two, marksOf(two, false), 1)?.high).toBe(10);
    expect(axisOf(drawn(["bars"]), marksOf(drawn(["bars"]), false), 1)).toBeUndefined();
  });
});

describe("rows", () => {
  const shares = table([{ type: "string", label: "name" }, { type: "number", label: "self" }], [["a", 3], ["b", 0], ["c", 1], ["d", null]]);

  it("as slices make a whole, those without a value left out", () => {
    expect(slicesOf(shares).map(({ label, from, to }) => [label, from, to])).toEqual([["a", 0, 0.75], ["c", 0.75, 1]]);
    expect(slicesOf(table([{ type: "string", label: "" }, { type: "number", label: "" }], []))).toEqual([]);
  });

  it("are sorted by a column either way, those without a value last", () => {
    expect(orderOf(shares, 1, false)).toEqual([0, 2, 1, 3]);
    expect(orderOf(shares, 1, true)).toEqual([1, 2, 0, 3]);
    expect(orderOf(shares, 0, false)).toEqual([3, 2, 1, 0]);
    expect(orderOf(shares, -1, true)).toEqual([0, 1, 2, 3]);
  });

  it("as spans have their last two numbers as start and end", () => {
    const columns = [{ type: "string", label: "Layer" }, { type: "string", label: "Name" }, { type: "string", label: "", role: "tooltip" },
      { type: "number", label: "Start" }, { type: "number", label: "End" }];
    expect(spansOf(table(columns, [["0", "Net", "Net 5 us", 1, 6], ["1", "?", "", null, 6]]))).toEqual([
      { row: 0, label: "0", name: "Net", tooltip: "Net 5 us", start: 1, end: 6 },
    ]);
  });
});
