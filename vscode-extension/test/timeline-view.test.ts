import { describe, expect, it } from "vitest";
import { exact, roundStep, tickLabel, ticks } from "../src/pages/timeline/ruler";
import { around, between, clamped, isNear, LEAST_SPAN_NS, panned, revealing, spanOf, toNs, toX, zoomed } from "../src/pages/timeline/view";
import { sliceOf, stretchOf, traceOf, viewOf, wordsOf } from "../src/pages/timeline/address";
import { given, head } from "./timeline";

const WHOLE = 1_000_000;

describe("the view", () => {
  it("keeps what is zoomed at where it is, on the way too", () => {
    const from = { begin: 200_000, end: 600_000 };
    for (const at of [200_000, 350_000, 599_999]) {
      const to = zoomed(from, 0.25, at, WHOLE);
      expect(spanOf(to)).toBeCloseTo(100_000);
      for (const part of [0, 0.3, 1]) {
        expect(toX(at, between(from, to, part), 1000)).toBeCloseTo(toX(at, from, 1000));
      }
    }
  });

  it("never leaves the timeline, nor looks nearer than can be seen", () => {
    expect(clamped({ begin: -50, end: 100 }, WHOLE)).toEqual({ begin: 0, end: 150 });
    expect(clamped({ begin: 999_950, end: 1_000_100 }, WHOLE)).toEqual({ begin: 999_850, end: WHOLE });
    expect(panned({ begin: 0, end: 100 }, -1e9, WHOLE)).toEqual({ begin: 0, end: 100 });
    expect(zoomed({ begin: 0, end: 100 }, 1e9, 50, WHOLE)).toEqual({ begin: 0, end: WHOLE });
    expect(spanOf(zoomed({ begin: 500, end: 600 }, 1e-9, 550, WHOLE))).toBe(LEAST_SPAN_NS);
    expect(spanOf(clamped({ begin: 0, end: 0 }, 0))).toBe(LEAST_SPAN_NS);
  });

  it("goes from pixels to time and back", () => {
    const view = { begin: 123, end: 4567 };
    expect(toNs(toX(1000, view, 800), view, 800)).toBeCloseTo(1000);
  });

  it("stays where a slice is seen, and moves where it is not", () => {
    const view = { begin: 1000, end: 2000 };
    expect(revealing(view, 1200, 1300, WHOLE)).toBe(view);
    const moved = revealing(view, 5000, 5100, WHOLE);
    expect(spanOf(moved)).toBe(1000);
    expect((moved.begin + moved.end) / 2).toBe(5050);
    const near = revealing({ begin: 0, end: WHOLE }, 5000, 5010, WHOLE);
    expect(spanOf(near)).toBeLessThan(100);
    expect(near.begin).toBeLessThan(5000);
    const fitted = around(5000, 6000, WHOLE);
    expect([fitted.begin < 5000, fitted.end > 6000]).toEqual([true, true]);
  });

  it("calls two views near where no pixel differs", () => {
    expect(isNear({ begin: 0.1, end: 1000 }, { begin: 0, end: 1000 }, 1000)).toBe(true);
    expect(isNear({ begin: 1, end: 1000 }, { begin: 0, end: 1000 }, 1000)).toBe(false);
  });
});

describe("the ruler", () => {
  it("has marks at round times", () => {
    expect([0.2, 1, 3, 20, 21, 99, 5001].map(roundStep)).toEqual([1, 1, 5, 20, 50, 100, 10_000]);
    const marks = ticks({ begin: 1_000_500, end: 1_001_500 }, 1000);
    expect(marks.map(({ ns }) => ns)).toEqual([1_000_600, 1_000_800, 1_001_000, 1_001_200, 1_001_400]);
    expect(marks.map(({ label }) => label)).toEqual(["1.000\u20096 ms", "1.000\u20098 ms", "1.001\u20090 ms", "1.001\u20092 ms", "1.001\u20094 ms"]);
  });

  it("stays exact to the nanosecond late in a long trace", () => {
    const late = 3_723_456_789_012; // more than an hour
    const marks = ticks({ begin: late, end: late + 40 }, 1000);
    expect(given(marks[1]).ns - given(marks[0]).ns).toBe(5);
    expect(new Set(marks.map(({ label }) => label)).size).toBe(marks.length);
    expect(exact(late)).toBe("3723.456\u2009789\u2009012 s");
    expect(exact(12_345)).toBe("12.345 µs");
    expect(exact(7)).toBe("7 ns");
    expect(exact(0)).toBe("0 ns");
    expect(exact(-1_500)).toBe("-1.500 µs");
  });

  it("shows just the digits that tell marks apart", () => {
    expect(tickLabel(0, 100)).toBe("0");
    expect(tickLabel(2_000_000, 1_000_000)).toBe("2 ms");
    expect(tickLabel(2_500_000, 500_000)).toBe("2.5 ms");
    expect(tickLabel(1_203_000_000, 1_000_000)).toBe("1.203 s");
  });
});

describe("the timeline's address", () => {
  it("holds the view, to the nanosecond", () => {
    const view = { begin: 1234, end: 98_765 };
    expect(viewOf(wordsOf(view, { begin: 0, end: WHOLE }), WHOLE)).toEqual(view);
    expect(wordsOf({ begin: 0, end: WHOLE }, { begin: 0, end: WHOLE })).toEqual({ from: "", to: "", at: "" });
    expect(viewOf({ at: "500000" }, WHOLE)).toEqual({ begin: 495_000, end: 505_000 });
  });

  it("heeds nothing that is no time or no slice", () => {
    for (const word of ["", "x", "-5", "1e9", "NaN", "9".repeat(30), "javascript:1"]) {
      expect(viewOf({ from: word, to: "500" }, WHOLE)).toBeUndefined();
      expect(stretchOf({ mark: `${word}-500` }, WHOLE)).toBeUndefined();
      expect(sliceOf({ slice: word }, head())).toBeUndefined();
    }
    expect(viewOf({ from: "500", to: "400" }, WHOLE)).toBeUndefined();
    expect(sliceOf({ slice: "99999999" }, head())).toBeUndefined();
    expect(stretchOf({ mark: "200-5000000" }, WHOLE)).toEqual({ begin: 200, end: WHOLE });
  });

  it("chooses a trace by run, stage and rank alone", () => {
    const words = { run: "a", rank: "3", stage: "fit", step: "2", phase: "forward", module: "m" };
    expect(traceOf({ page: "timeline", words })).toEqual({ run: "a", rank: 3, stage: "fit" });
    expect(traceOf({ page: "timeline", words: { rank: "x" } })).toEqual({});
  });
});
