/** Text with code in it, and whole pages of DeepScope's own documentation. */

import { Lexer, type MarkedToken, type Token } from "marked";
import { h, type ComponentChildren, type JSX } from "preact";
import { useMemo } from "preact/hooks";

/** Words in which backticks stand around code, and nothing else is markup: advice names what the trace has, whose brackets are no links. */
export function Prose({ text }: { readonly text: string }): JSX.Element {
  return <>{text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>;
}

/** Where a link to another page leads, `DS002.md`; undefined for nowhere. */
type Linked = (page: string) => string | undefined;

/** A page in Markdown. HTML in it stays text; only addresses of https become links to elsewhere. */
export function Page({ text, linked }: { readonly text: string; readonly linked: Linked }): JSX.Element {
  const blocks = useMemo(() => Lexer.lex(text), [text]);
  return <div class="prose">{drawn(blocks, linked)}</div>;
}

function drawn(tokens: readonly Token[], linked: Linked): ComponentChildren {
  return (tokens as readonly MarkedToken[]).map((token, at) => <Markup key={at} of={token} linked={linked} />);
}

function Markup({ of, linked }: { readonly of: MarkedToken; readonly linked: Linked }): JSX.Element | null {
  const inside = "tokens" in of ? drawn(of.tokens ?? [], linked) : null;
  switch (of.type) {
    case "space":
      return null;
    case "heading":
      return of.depth < 2 ? <h3>{inside}</h3> : <h4>{inside}</h4>;
    case "paragraph":
      return <p>{inside}</p>;
    case "code":
      return <pre>{of.text}</pre>;
    case "list": {
      const items = of.items.map((item, at) => <li key={at}>{drawn(item.tokens, linked)}</li>);
      return of.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const rows = [of.header, ...of.rows].map((row, place) => (
        <tr key={place}>{row.map(({ tokens, header }, at) => h(header ? "th" : "td", { key: at }, drawn(tokens, linked)))}</tr>
      ));
      return <table>{rows}</table>;
    }
    case "codespan":
      return <code>{of.text}</code>;
    case "strong":
      return <strong>{inside}</strong>;
    case "em":
      return <em>{inside}</em>;
    case "link": {
      const isOutside = /^https:\/\/[\w.-]+\//.test(of.href);
      const target = isOutside ? of.href : linked(of.href);
      return of.autolink === true || target === undefined ? (
        <>{of.autolink === true ? of.raw : inside}</>
      ) : (
        <a href={target} {...(isOutside ? { target: "_blank", rel: "noreferrer noopener" } : {})}>
          {inside}
        </a>
      );
    }
    case "text":
      return <>{of.tokens === undefined ? of.text : inside}</>;
    case "escape":
      return <>{of.text}</>;
    default:
      return <>{of.raw}</>;
  }
}
