import { describe, expect, it } from "vitest";
import { arrayToDataTable, DataTable, orderOf, seriesOf, sharesOf, shown, spansOf, stacked } from "../src/webviews/charts/data";

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

  it("takes a column of tooltips for no series", () => {
    const made = table(
      [{ type: "string", label: "Step" }, { type: "number", label: "Kernel" }, { type: "string", label: "", role: "tooltip" }],
      [["4", 7, "<b>Step 4</b>"]],
    );
    expect(seriesOf(made)).toEqual([{ label: "Kernel", column: 1, values: [7] }]);
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

describe("stacked series", () => {
  it("lie on each other, and what is not known lies nowhere", () => {
    const made = table(
      [{ type: "string", label: "" }, { type: "number", label: "a" }, { type: "number", label: "b" }, { type: "number", label: "c" }],
      [["0", 1, 2, 3], ["1", 10, null, 10]],
    );
    expect(stacked(seriesOf(made))).toEqual([[1, 10], [3, null], [6, 20]]);
  });
});

describe("rows", () => {
  const shares = table([{ type: "string", label: "name" }, { type: "number", label: "self" }], [["a", 3], ["b", 0], ["c", 1], ["d", null]]);

  it("as shares make a whole, those without a value left out", () => {
    expect(sharesOf(shares)).toEqual([{ row: 0, label: "a", share: 0.75 }, { row: 2, label: "c", share: 0.25 }]);
    expect(sharesOf(table([{ type: "string", label: "" }, { type: "number", label: "" }], []))).toEqual([]);
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
      { label: "0", name: "Net", tooltip: "Net 5 us", start: 1, end: 6 },
    ]);
  });
});
