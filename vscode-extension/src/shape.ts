/** Checked reading of values that come from outside: a server's answer, a webview's message, a child's output. */

/** What was read does not have the expected shape; the message names the place. */
export class ShapeError extends Error {}

export type Reader<T> = (value: unknown, at: string) => T;
type Fields<R extends Record<string, Reader<unknown>>> = { [K in keyof R]: ReturnType<R[K]> };

/** Reads a value; `what` begins the message of a `ShapeError`. */
export function read<T>(reader: Reader<T>, value: unknown, what: string): T {
  return reader(value, what);
}

/** The value read, or undefined where it has another shape. */
export function readOr<T>(reader: Reader<T>, value: unknown): T | undefined {
  try {
    return reader(value, "value");
  } catch (error) {
    if (error instanceof ShapeError) {
      return undefined;
    }
    throw error;
  }
}

export const text: Reader<string> = (value, at) => (typeof value === "string" ? value : fail(at, "a string", value));

export const finite: Reader<number> = (value, at) =>
  typeof value === "number" && Number.isFinite(value) ? value : fail(at, "a number", value);

export const natural: Reader<number> = (value, at) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : fail(at, "a whole number", value);

export const flag: Reader<boolean> = (value, at) =>
  typeof value === "boolean" ? value : fail(at, "true or false", value);

export function nullable<T>(reader: Reader<T>): Reader<T | null> {
  return (value, at) => (value === null || value === undefined ? null : reader(value, at));
}

/** A field that may be left out. */
export function withDefault<T>(reader: Reader<T>, fallback: T): Reader<T> {
  return (value, at) => (value === undefined ? fallback : reader(value, at));
}

export const nothing: Reader<null> = (value, at) => (value === null || value === undefined ? null : fail(at, "nothing", value));

export function either<A, B>(one: Reader<A>, other: Reader<B>): Reader<A | B> {
  return (value, at) => readOr(one, value) ?? other(value, at);
}

export function list<T>(reader: Reader<T>): Reader<T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) {
      return fail(at, "a list", value);
    }
    // Lists of numbers are long (a timeline's window): no words are made for each place.
    return (reader as unknown) === finite && value.every(Number.isFinite)
      ? (value as T[])
      : value.map((entry: unknown, index) => reader(entry, `${at}[${index}]`));
  };
}

export function oneOf<const T extends string>(...words: readonly T[]): Reader<T> {
  return (value, at) => words.find((word) => word === value) ?? fail(at, words.map((word) => `"${word}"`).join(" or "), value);
}

/** A text of a form; `what` names it. */
export function matching(pattern: RegExp, what: string): Reader<string> {
  return (value, at) => {
    const found = text(value, at);
    return pattern.test(found) ? found : fail(at, what, value);
  };
}

/** One word and no other: it tells the members of a union apart. */
export function literal<const T extends string>(word: T): Reader<T> {
  return oneOf(word);
}

export function object<R extends Record<string, Reader<unknown>>>(fields: R): Reader<Fields<R>> {
  return (value, at) => {
    const given = asRecord(value, at);
    const entries = Object.entries(fields).map(([name, reader]) => [name, reader(given[name], `${at}.${name}`)]);
    return Object.fromEntries(entries) as Fields<R>;
  };
}

/** An object with any keys and values of one shape. */
export function dictionary<T>(reader: Reader<T>): Reader<Readonly<Record<string, T>>> {
  return (value, at) =>
    Object.fromEntries(
      Object.entries(asRecord(value, at)).map(([name, entry]) => [name, reader(entry, `${at}.${name}`)]),
    );
}

/** One of several objects, told apart by the text in their field `type`. */
export function union<R extends Record<string, Reader<unknown>>>(members: R): Reader<ReturnType<R[keyof R]>> {
  return (value, at) => {
    const type = text(asRecord(value, at)["type"], `${at}.type`);
    const reader = Object.hasOwn(members, type) ? members[type] : undefined;
    return reader === undefined
      ? fail(`${at}.type`, `one of ${Object.keys(members).join(", ")}`, type)
      : (reader(value, at) as ReturnType<R[keyof R]>);
  };
}

function asRecord(value: unknown, at: string): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : fail(at, "an object", value);
}

function fail(at: string, wanted: string, value: unknown): never {
  const shown = JSON.stringify(value) as string | undefined;
  throw new ShapeError(`${at} should be ${wanted} and is ${(shown ?? String(value)).slice(0, 80)}`);
}
