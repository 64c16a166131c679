import { h } from "preact";
import { describe, expect, it } from "vitest";
import type { Distributed, LateRank } from "../src/pages/contract";
import { HeatMap } from "../src/pages/distributed/HeatMap";
import { Late } from "../src/pages/distributed/RankDetails";
import { RankBars } from "../src/pages/distributed/RankBars";
import { drawn, type Drawn } from "./drawn";

function run(count: number): Distributed {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  return { ranks, hasSteps: true, ownNs: ranks.map(() => 10), medianOwnNs: 10, levels: [5, 10, 25, 50], hosts: [""], hostOf: ranks.map(() => 0) } as unknown as Distributed;
}

function cells(map: Drawn): Drawn[] {
  return map.all().filter((one) => one.said("role") === "option");
}

/** Ranks that the key Tab reaches. */
function reachable(map: Drawn): (string | undefined)[] {
  return cells(map).flatMap((cell) => (cell.said("tabindex") === "0" ? [cell.said("data-place")] : []));
}

describe("the heat map of ranks", () => {
  it("is walked through with keys, ranks that cannot be opened among them", async () => {
    const chosen: (number | undefined)[] = [];
    const map = await drawn(h(HeatMap, { of: run(20), chosen: undefined, choose: (rank) => void chosen.push(rank), opens: (rank) => rank % 2 === 1 }));
    expect(reachable(map)).toEqual(["0"]);
    const [first, second] = cells(map);
    expect(first?.said("disabled")).toBeUndefined();
    expect(first?.said("aria-disabled")).toBe("true");
    await first?.fire("keydown", { key: "ArrowDown" });
    expect(reachable(map)).toEqual(["8"]);
    expect(cells(map)[8]?.focused).toBe(1);
    await first?.fire("click");
    await second?.fire("click");
    expect(chosen).toEqual([1]);
  });

  it("says what its times are of", async () => {
    const caption = async (hasSteps: boolean): Promise<string> =>
      (await drawn(h(HeatMap, { of: { ...run(2), hasSteps }, chosen: undefined, choose: () => undefined, opens: () => true }))).text;
    expect(await caption(true)).toContain("A step without communication");
    expect(await caption(false)).toContain("The time without communication");
  });

  it("is reached by Tab when another run has fewer ranks", async () => {
    const of = (count: number): Parameters<typeof HeatMap>[0] => ({ of: run(count), chosen: undefined, choose: () => undefined, opens: () => true });
    const map = await drawn(h(HeatMap, of(1024)));
    await cells(map)[0]?.fire("keydown", { key: "End" });
    expect(reachable(map)).toEqual(["1023"]);
    await drawn(h(HeatMap, of(4)), map);
    expect(reachable(map)).toEqual(["3"]);
  });
});

describe("a rank that is not in the file", () => {
  const linkOf = (rank: number): string | undefined => (rank === 1 ? "#/distributed?of=1" : undefined);
  const links = (map: Drawn): string[] => map.all().flatMap((one) => (one.localName === "a" ? [one.text] : []));

  it("has its bar, and no link", async () => {
    const of = { ...run(2), partNames: ["kernel"], parts: [[5], [6]] };
    const bars = await drawn(h(RankBars, { of, places: [0, 1], linkOf }));
    expect(bars.text).toContain("rank 0");
    expect(links(bars)).toEqual(["rank 1"]);
  });

  it("is in the table, if the file has all of it", async () => {
    const of = (leftOut: number): Distributed => ({ ...run(1024), partNames: ["kernel"], parts: run(1024).ranks.map(() => [5]), table: { leftOut } }) as unknown as Distributed;
    const words = async (leftOut: number): Promise<string> => (await drawn(h(RankBars, { of: of(leftOut), places: run(1024).ranks, linkOf }))).text;
    expect(await words(0)).toContain("and 960 more ranks, which the table below has.");
    expect(await words(24)).toMatch(/and 960 more ranks\.$/);
  });

  it("is late, and is no link", async () => {
    const of = { rank: 0, excessNs: 1, message: "late", part: "", place: "", cause: "", figures: [] } as unknown as LateRank;
    const late = await drawn(h(Late, { of, link: linkOf(0) }));
    expect(late.text).toContain("Rank 0");
    expect(links(late)).toEqual([]);
    expect(links(await drawn(h(Late, { of: { ...of, rank: 1 }, link: linkOf(1) })))).toEqual(["Rank 1"]);
  });
});
