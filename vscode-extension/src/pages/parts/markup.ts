/** The part of Markdown that DeepScope's own pages use, as a tree: what is no markup stays text, HTML too. */

export type Inline =
  | { readonly kind: "text" | "code" | "strong" | "emphasis"; readonly text: string }
  | { readonly kind: "link"; readonly text: string; readonly target: string };

export type Block =
  | { readonly kind: "heading"; readonly level: number; readonly text: string }
  | { readonly kind: "paragraph"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly string[] };

const FENCE = "```";
const HEADING = /^(#{1,4}) +(.*)$/;
const ITEM = /^[-*] +(.*)$/;
const INLINE = /`([^`]+)`|\[([^\]]+)\]\(([^()\s]+)\)|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;

/** The blocks of a page. */
export function blocksOf(text: string): readonly Block[] {
  const found: Block[] = [];
  const lines = text.split(/\r?\n/);
  let at = 0;
  const taken = (isIn: (line: string) => boolean): string[] => {
    const start = at;
    while (at < lines.length && isIn(lines[at] ?? "")) {
      at += 1;
    }
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const heading = HEADING.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (heading !== null) {
      found.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
      at += 1;
    } else if (line.startsWith(FENCE)) {
      at += 1;
      found.push({ kind: "code", text: taken((one) => !one.startsWith(FENCE)).join("\n") });
      at += 1;
    } else if (ITEM.test(line)) {
      found.push({ kind: "list", items: itemsOf(taken((one) => one.trim() !== "" && (ITEM.test(one) || one.startsWith("  ")))) });
    } else {
      found.push({ kind: "paragraph", text: taken((one) => one.trim() !== "" && !one.startsWith(FENCE) && !HEADING.test(one)).join(" ") });
    }
  }
  return found;
}

function itemsOf(lines: readonly string[]): string[] {
  const items: string[] = [];
  for (const line of lines) {
    const item = ITEM.exec(line)?.[1];
    if (item === undefined && items.length > 0) {
      items.push(`${items.pop() ?? ""} ${line.trim()}`);
    } else {
      items.push(item ?? line.trim());
    }
  }
  return items;
}

/** Words of a paragraph: code, links, emphasis. */
export function inlineOf(text: string): readonly Inline[] {
  const found: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > end) {
      found.push({ kind: "text", text: text.slice(end, match.index) });
    }
    const [whole, code, label, target, strong, emphasis] = match;
    if (code !== undefined) {
      found.push({ kind: "code", text: code });
    } else if (label !== undefined && target !== undefined) {
      found.push({ kind: "link", text: label, target });
    } else {
      found.push(strong !== undefined ? { kind: "strong", text: strong } : { kind: "emphasis", text: emphasis ?? "" });
    }
    end = match.index + whole.length;
  }
  if (end < text.length) {
    found.push({ kind: "text", text: text.slice(end) });
  }
  return found;
}

/** The text in which backticks alone mean something: advice names what the trace has, whose brackets are no links. */
export function codeOf(text: string): readonly Inline[] {
  return text.split(/`([^`]+)`/).flatMap((part, at): Inline[] => (part === "" ? [] : [{ kind: at % 2 === 1 ? "code" : "text", text: part }]));
}
