/** Numbers as they are shown where the server sends no words for them. */

/** `12.4 ms`: three digits; `0` for none. */
export function duration(ns: number): string {
  return scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
}

/** `2.95 → 2.79 s`: from one time to another; the unit once where both have the same. */
export function durationChange(oldNs: number, newNs: number): string {
  const [before, now] = [duration(oldNs), duration(newNs)];
  const [amount, unit] = before.split(" ");
  return `${amount ?? ""}${unit === now.split(" ")[1] ? "" : ` ${unit ?? ""}`} → ${now}`;
}

/** `+3.10 ms`, `-120 ms`. */
export function difference(ns: number): string {
  return `${ns > 0 ? "+" : ""}${duration(ns)}`;
}

/** `1.50 MiB`: three digits; `0` for none. */
export function size(bytes: number): string {
  return scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
}

/** `38 %`, `4.2 %`, `<0.1 %`, as the server words it. */
export function share(ratio: number): string {
  const percent = 100 * ratio;
  if (percent === 0) {
    return "0 %";
  }
  if (percent > 0 && percent < 0.05) {
    return "<0.1 %";
  }
  return `${percent >= 9.95 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

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

function scaled(value: number, base: number, units: readonly string[]): string {
  if (value === 0) {
    return "0";
  }
  let scaledValue = Math.abs(value);
  let unit = 0;
  while (scaledValue >= base * 0.9995 && unit < units.length - 1) {
    scaledValue /= base;
    unit += 1;
  }
  const digits = unit === 0 ? 0 : scaledValue >= 99.95 ? 0 : scaledValue >= 9.995 ? 1 : 2;
  return `${value < 0 ? "-" : ""}${scaledValue.toFixed(digits)} ${units[unit] ?? ""}`;
}
