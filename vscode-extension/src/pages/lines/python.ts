/**
 * Python's text in colours: comments, texts, keywords, numbers, names that are defined.
 *
 * Cut into lines as it comes; what a line leaves open (a text of three quotes) is carried to the next one.
 */

type TokenKind = "comment" | "text" | "keyword" | "number" | "definition" | "decorator" | "";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** The quotes of the text that is open at the start of a line; "" for none. */
export type Open = "" | '"""' | "'''";

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match " +
    "nonlocal not or pass raise return try type while with yield self cls"
  ).split(" "),
);
const SOFT = new Set(["match", "case", "type"]);
const PIECE = /([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)|(\d[\w.]*)|("""|'''|"|')|(#.*)|(@[A-Za-z_][\w.]*)|(\s+)|([^\sA-Za-z_\u0080-\uffff\d"'#@]+|@)/y;
const PREFIX = /^[rbfuRBFU]{1,3}$/;
const LONGEST = 2000;

/** The tokens of a line, and what it leaves open. */
export function tokens(line: string, open: Open): readonly [readonly Token[], Open] {
  if (line.length > LONGEST) {
    return [[{ kind: "", text: line }], open];
  }
  const found: Token[] = [];
  let at = 0;
  if (open !== "") {
    const end = closing(line, 0, open);
    found.push({ kind: "text", text: line.slice(0, end ?? line.length) });
    if (end === undefined) {
      return [found, open];
    }
    at = end;
  }
  let before = "";
  while (at < line.length) {
    PIECE.lastIndex = at;
    const piece = PIECE.exec(line);
    if (piece === null) {
      found.push({ kind: "", text: line.slice(at) });
      break;
    }
    const [whole, name, number, quote, comment, decorator, blank] = piece;
    if (quote !== undefined) {
      const begin = at + quote.length;
      const end = closing(line, begin, quote);
      const last = found.at(-1);
      const prefix = last?.kind === "" && PREFIX.test(last.text) ? (found.pop()?.text ?? "") : "";
      found.push({ kind: "text", text: prefix + line.slice(at, end ?? line.length) });
      if (end === undefined) {
        return [found, quote === '"""' || quote === "'''" ? quote : ""];
      }
      at = end;
      before = "";
      continue;
    }
    found.push({ kind: kindOf(line, at, before, { name, number, comment, decorator }), text: whole });
    at += whole.length;
    before = blank === undefined ? whole : before;
  }
  return [found, ""];
}

interface Piece {
  readonly name: string | undefined;
  readonly number: string | undefined;
  readonly comment: string | undefined;
  readonly decorator: string | undefined;
}

function kindOf(line: string, at: number, before: string, { name, number, comment, decorator }: Piece): TokenKind {
  if (comment !== undefined) {
    return "comment";
  }
  if (decorator !== undefined) {
    return line.slice(0, at).trim() === "" ? "decorator" : "";
  }
  if (number !== undefined) {
    return "number";
  }
  if (name === undefined || before === ".") {
    return "";
  }
  if (before === "def" || before === "class") {
    return "definition";
  }
  if (SOFT.has(name)) {
    return line.slice(0, at).trim() === "" && /^\s+[^\s=.,)(]/.test(line.slice(at + name.length)) ? "keyword" : "";
  }
  return KEYWORDS.has(name) ? "keyword" : "";
}

/** Where a text ends that is open from a place on; undefined where it does not in this line. */
function closing(line: string, from: number, quote: string): number | undefined {
  for (let at = from; at < line.length; at += 1) {
    if (line[at] === "\\") {
      at += 1;
    } else if (line.startsWith(quote, at)) {
      return at + quote.length;
    }
  }
  return undefined;
}

/** What is open at the start of each line of a text. */
export function opens(lines: readonly string[]): Open[] {
  const found: Open[] = [];
  let open: Open = "";
  for (const line of lines) {
    found.push(open);
    // Most lines neither open nor close anything.
    open = open === "" && !line.includes('"""') && !line.includes("'''") ? "" : tokens(line, open)[1];
  }
  return found;
}
