/** A line of code that can be gone to: in the editor where there is one, else in the pages. */

import type { JSX } from "preact";
import { go, linkTo, useAddress } from "../app/address";
import type { CodePlace } from "../source/source";
import { useSource } from "../source/answers";
import { visible } from "../words";

interface Props {
  readonly of: CodePlace & { readonly place?: string };
  /** What it is called, where that is not its `place`. */
  readonly words?: string;
  readonly class?: string;
}

/** Goes to a line without a link that is clicked. */
export function useOpen(): (place: CodePlace) => void {
  const source = useSource();
  const address = useAddress();
  return ({ file, line }) => {
    if (source.opensCode) {
      source.open({ file, line });
    } else {
      go(linkTo(address, "lines", { file, line: String(line) }));
    }
  };
}

export function Place({ of: { file, line, place = "" }, words = place, class: style = "" }: Props): JSX.Element {
  const source = useSource();
  const address = useAddress();
  // Of a place for which there is no room the path is cut, never the line.
  const [, path, at] = /^(.*)(:\d+)$/s.exec(words) ?? [];
  const shown =
    path === undefined ? (
      words
    ) : (
      <>
        <span class="path">{path}</span>
        <span>{at}</span>
      </>
    );
  if (file === "") {
    return <span class={`place ${style}`}>{shown}</span>;
  }
  const opened = (event: Event): void => {
    if (source.opensCode) {
      event.preventDefault();
      source.open({ file, line });
    }
  };
  return (
    <a class={`place ${style}`} href={linkTo(address, "lines", { file, line: String(line) })} title={visible(`${file}:${line}`)} onClick={opened}>
      {shown}
    </a>
  );
}
