/** A piece of advice: what and where, what it may save, what to change, and the page that explains it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { linkTo, useAddress } from "../app/address";
import { questions, type ShownFinding } from "../contract";
import { Answer, useAsked, WAITING } from "../source/answers";
import { Terms } from "../parts/Figures";
import { Place } from "../parts/Place";
import { Page, Prose } from "../parts/Prose";
import { duration, share, words } from "../words";
import "./findings.css";

const WORDS: Readonly<Record<ShownFinding["severity"], string>> = { warning: "Warning", info: "Info", hint: "Hint" };

const SAVING: Readonly<Record<ShownFinding["savingWord"], string>> = {
  about: "Of the wall time; programs with this mistake gained about as much as was estimated",
  "up to": "Of the wall time; no more than this could be saved",
};

export function FindingCard({ of, isShort = false }: { readonly of: ShownFinding; readonly isShort?: boolean }): JSX.Element {
  return (
    <article class={`finding ${of.severity}`}>
      <header>
        <h3>
          <span class="code" title={WORDS[of.severity]}>
            {of.code}
          </span>{" "}
          {of.title}
        </h3>
        {of.savingNs > 0 && (
          <span class="saving" title={SAVING[of.savingWord]}>
            {of.savingWord} {share(of.savingShare)}
          </span>
        )}
      </header>
      {of.place !== "" && (
        <p class="where">
          <Place of={of} />
          {of.function !== "" && <span class="muted"> in {of.function}</span>}
        </p>
      )}
      <p>
        <Prose text={of.message} />
      </p>
      <p class="remedy">
        <Prose text={of.remedy} />
      </p>
      {of.tried.map((words) => (
        <p key={words} class="tried">
          {words}
        </p>
      ))}
      {!isShort && of.evidence.length > 0 && (
        <Terms
          class="evidence"
          of={[
            ...(of.savingNs > 0 ? [[`could save ${of.savingWord}`, duration(of.savingNs)] as const] : []),
            ...of.evidence.map(({ label, value, kind }) => [label, words(value, kind)] as const),
          ]}
        />
      )}
      {!isShort && <Explained code={of.code} />}
    </article>
  );
}

/** The page about advice of this code, asked for when it is opened. */
function Explained({ code }: { readonly code: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const found = useAsked(questions.finding_page, isOpen ? { code } : undefined);
  const address = useAddress();
  const linked = (page: string): string | undefined => {
    const other = /^(DS\d{3})\.md$/.exec(page)?.[1];
    return other === undefined ? undefined : linkTo(address, "findings", { code: other });
  };
  return (
    <details class="explained" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What this means, and when it does not hold</summary>
      {isOpen && <Answer of={found ?? WAITING}>{({ text }) => (text === "" ? <p class="muted">There is no page about it.</p> : <Page text={text} linked={linked} />)}</Answer>}
    </details>
  );
}
