/** How long ago something was. The extension words it itself, since it changes from minute to minute without news from the server. */

const AGES = [
  { unit: "day", ms: 86_400_000 },
  { unit: "h", ms: 3_600_000 },
  { unit: "min", ms: 60_000 },
] as const;

/** `5 min ago`, `3 days ago`; `just now` below a minute; "" where the time is not known. */
export function age(recordedMs: number, nowMs: number): string {
  if (!Number.isFinite(recordedMs)) {
    return "";
  }
  const passed = nowMs - recordedMs;
  const fitting = AGES.find(({ ms }) => passed >= ms);
  if (fitting === undefined) {
    return "just now";
  }
  const count = Math.floor(passed / fitting.ms);
  return `${count} ${fitting.unit}${fitting.unit === "day" && count > 1 ? "s" : ""} ago`;
}
