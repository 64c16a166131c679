import { describe, expect, it } from "vitest";
import type { Column, Table } from "../src/pages/contract";
import { compared, delimited, flattened, hasWords, rowsOf } from "../src/pages/parts/table/rows";
import { fittedWidths, shownColumns } from "../src/pages/parts/table/columns";
import { writeText } from "../src/pages/parts/browser";
import { amount, filtersOf, filtersWord, meets, orderOf, orderWord } from "../src/pages/parts/table/state";

const column = (key: string, kind: Column["kind"], rank = 0): Column => ({ key, title: key, kind, help: "", rank });
const COLUMNS = [column("name", "text"), column("share", "share"), column("calls", "count", 3), column("memory", "bytes", 9), column("why", "text", 1)];

it("a page without a clipboard, which has no https, refuses to copy and does not fail", async () => {
  await expect(writeText("a")).rejects.toThrow();
});

function table(rows: Table["rows"], more: Partial<Table> = {}): Table {
  return { id: "t", title: "T", columns: COLUMNS, rows, files: ["/a/net.py"], places: rows.map(() => [-1, 0]), parents: [], keys: [], leftOut: 0, ...more };
}

describe("rows of a table", () => {
  it("know their place, their key and what is below them", () => {
    const roots = rowsOf(
      table([["a"], ["b"], ["c"]], {
        parents: [-1, 0, 1],
        keys: ["x", "y", "z"],
        places: [
          [-1, 0],
          [0, 12],
          [7, 1],
        ],
      }),
    );
    expect([...flattened(roots)].map(({ key, file, line }) => [key, file, line])).toEqual([
      ["x", "", 0],
      ["y", "/a/net.py", 12],
      ["z", "", 1],
    ]);
  });

  it("below a row that does not stand before them, or below themselves, are roots", () => {
    expect(rowsOf(table([["a"], ["b"]], { parents: [1, 1] })).map(({ index }) => index)).toEqual([0, 1]);
  });

  it("are found by words in any order and case, in any column of words and in the path", () => {
    const rows = rowsOf(table([["aten::MM", 0.5, 3, 4, "memory-bound"]], { places: [[0, 3]] }));
    const found = (wanted: string): number => rows.filter((row) => hasWords(row, COLUMNS, wanted)).length;
    expect(["memory mm", "NET.PY", "mm conv", "0.5"].map(found)).toEqual([1, 1, 0, 0]);
  });

  it("are in the order of numbers, also within words", () => {
    expect(["layer 10", "layer 9", "Layer 1"].sort(compared)).toEqual(["Layer 1", "layer 9", "layer 10"]);
    expect([3, 20, 1].sort(compared)).toEqual([1, 3, 20]);
  });
});

describe("a table's state in the address", () => {
  it("is an order by several columns", () => {
    const orders = orderOf("-calls,name,gone", new Set(["calls", "name"]));
    expect(orders).toEqual([
      { id: "calls", desc: true },
      { id: "name", desc: false },
    ]);
    expect(orderWord(orders)).toBe("-calls,name");
  });

  it("has filters, whatever their words hold", () => {
    const kinds = new Map(COLUMNS.map(({ key, kind }) => [key, kind]));
    const filters = [
      { id: "why", value: { words: ["a|b;c:d", "é%", ""] } },
      { id: "calls", value: { least: 3, most: undefined } },
    ];
    expect(filtersOf(filtersWord(filters), kinds)).toEqual(filters);
    expect(filtersOf("calls:x..y;nothing:1..2;;why;calls:..", kinds)).toEqual([]);
  });

  it("leaves rows that meet every condition; what is not known is in no range", () => {
    expect([meets(3, { least: 3, most: 4 }), meets(5, { least: 3, most: 4 }), meets(null, { least: undefined, most: 4 })]).toEqual([true, false, false]);
    expect([meets("a", { words: ["a", "b"] }), meets(null, { words: [""] })]).toEqual([true, true]);
  });

  it("takes amounts as people write them", () => {
    expect([amount("1.5ms", "time"), amount("2", "time"), amount("3 µs", "time"), amount("10%", "share"), amount("10", "share")]).toEqual([1.5e6, 2e6, 3e3, 0.1, 0.1]);
    expect([amount("64 KiB", "bytes"), amount("1,000", "count"), amount("2G", "flops"), amount("5 TFLOP/s", "rate")]).toEqual([65536, 1000, 2e9, 5e12]);
    expect([amount("", "time"), amount("many", "count")]).toEqual([undefined, undefined]);
  });
});

describe("the columns for which there is room", () => {
  const widths = new Map(COLUMNS.map(({ key }, at) => [key, at === 0 ? 200 : 100]));

  it("are all, else the less important ones leave first, and those without a rank never", () => {
    expect(shownColumns(COLUMNS, widths, 600, {})).toEqual(["name", "share", "calls", "memory", "why"]);
    expect(shownColumns(COLUMNS, widths, 599, {})).toEqual(["name", "share", "calls", "why"]);
    expect(shownColumns(COLUMNS, widths, 100, {})).toEqual(["name", "share"]);
  });

  it("are those that the reader chose, room or not", () => {
    expect(shownColumns(COLUMNS, widths, 100, { memory: true, share: false, name: false })).toEqual(["name", "memory"]);
  });

  it("are beside a first one that leaves them room", () => {
    expect(fittedWidths(COLUMNS, widths, 360).get("name")).toBe(162);
    expect(fittedWidths(COLUMNS, widths, Number.POSITIVE_INFINITY).get("name")).toBe(200);
  });
});

describe("rows for a spreadsheet", () => {
  it("have plain numbers with their units, quotes where they are needed, and no formulas", () => {
    const text = delimited(
      [column("name", "text"), column("self", "time"), column("part", "share")],
      [
        ['a "b", c', 1234, 0.5],
        ["=HYPERLINK(1)", null, null],
      ],
      ",",
    );
    expect(text).toBe('name,self (ns),part\n"a ""b"", c",1234,0.5\n\'=HYPERLINK(1),,\n');
  });
});
