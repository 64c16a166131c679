/** Text with code in it, and whole pages of DeepScope's own documentation. */

import type { JSX } from "preact";
import { blocksOf, codeOf, inlineOf, type Block, type Inline } from "./markup";

/** Words in which backticks stand around code. */
export function Prose({ text }: { readonly text: string }): JSX.Element {
  return <>{codeOf(text).map((part, at) => (part.kind === "code" ? <code key={at}>{part.text}</code> : part.text))}</>;
}

interface PageProps {
  readonly text: string;
  /** Where a link to another page leads, `DS002.md`; undefined for nowhere. */
  readonly linked: (page: string) => string | undefined;
}

/** A page; only addresses of https become links to elsewhere. */
export function Page({ text, linked }: PageProps): JSX.Element {
  return (
    <div class="prose">
      {blocksOf(text).map((block, at) => (
        <OneBlock key={at} block={block} linked={linked} />
      ))}
    </div>
  );
}

function OneBlock({ block, linked }: { readonly block: Block; readonly linked: PageProps["linked"] }): JSX.Element {
  switch (block.kind) {
    case "heading":
      return block.level < 2 ? <h3>{block.text}</h3> : <h4>{block.text}</h4>;
    case "code":
      return <pre>{block.text}</pre>;
    case "list":
      return (
        <ul>
          {block.items.map((item, at) => (
            <li key={at}>
              <Words text={item} linked={linked} />
            </li>
          ))}
        </ul>
      );
    case "paragraph":
      return (
        <p>
          <Words text={block.text} linked={linked} />
        </p>
      );
  }
}

function Words({ text, linked }: PageProps): JSX.Element {
  return <>{inlineOf(text).map((part, at) => oneWord(part, at, linked))}</>;
}

function oneWord(part: Inline, at: number, linked: PageProps["linked"]): JSX.Element | string {
  switch (part.kind) {
    case "text":
      return part.text;
    case "code":
      return <code key={at}>{part.text}</code>;
    case "strong":
      return <strong key={at}>{part.text}</strong>;
    case "emphasis":
      return <em key={at}>{part.text}</em>;
    case "link": {
      const isOutside = /^https:\/\/[\w.-]+\//.test(part.target);
      const target = isOutside ? part.target : linked(part.target);
      return target === undefined ? (
        part.text
      ) : (
        <a key={at} href={target} {...(isOutside ? { target: "_blank", rel: "noreferrer noopener" } : {})}>
          {part.text}
        </a>
      );
    }
  }
}
