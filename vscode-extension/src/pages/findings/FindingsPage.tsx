/** All advice, the largest saving first; by severity and by code. */

import type { JSX } from "preact";
import { choiceOf, go, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Findings, type Severity, type ShownFinding } from "../contract";
import { Answer, useAnswer } from "../source/answers";
import { Segments, Select } from "../parts/Controls";
import { FindingCard } from "./FindingCard";

const SEVERITIES: readonly (readonly [Severity, string])[] = [
  ["warning", "Warnings"],
  ["info", "Infos"],
  ["hint", "Hints"],
];

export function FindingsPage({ address }: PageProps): JSX.Element {
  const found = useAnswer(questions.findings, choiceOf(address));
  return (
    <Answer of={found}>
      {(answer) => (answer.findings.length === 0 ? <p class="muted">{answer.without}</p> : <List of={answer} address={address} />)}
    </Answer>
  );
}

function List({ of, address }: { readonly of: Findings; readonly address: Address }): JSX.Element {
  const code = address.words["code"] ?? "";
  const severity = SEVERITIES.find(([one]) => one === address.words["severity"])?.[0] ?? "";
  const codes = [...new Map(of.findings.map((one) => [one.code, one.title]))].sort(([one], [other]) => one.localeCompare(other));
  const shown = of.findings.filter((one) => (code === "" || one.code === code) && (severity === "" || one.severity === severity));
  return (
    <>
      <div class="choices-row">
        <Segments<Severity | "">
          label="Severity"
          options={[["", `All · ${of.findings.length}`], ...SEVERITIES.flatMap(([one, words]) => countedOf(of.findings, one, words))]}
          value={severity}
          choose={(next) => go(withWords(address, { severity: next }))}
        />
        {(codes.length > 1 || code !== "") && (
          <Select
            label="Code"
            options={[["", "All codes"], ...(code !== "" && !codes.some(([one]) => one === code) ? [[code, code] as const] : []), ...codes.map(([one, title]) => [one, `${one} ${title}`] as const)]}
            value={code}
            choose={(next) => go(withWords(address, { code: next }))}
          />
        )}
      </div>
      {shown.length === 0 && (
        <p class="muted">
          Nothing of this was found. <a href={withWords(address, { code: "", severity: "" })}>Show all</a>
        </p>
      )}
      <div class="stack">
        {shown.map((one) => (
          <FindingCard key={`${one.code} ${one.file}:${one.line}`} of={one} />
        ))}
      </div>
    </>
  );
}

function countedOf(findings: readonly ShownFinding[], severity: Severity, words: string): (readonly [Severity, string])[] {
  const count = findings.filter((one) => one.severity === severity).length;
  return count === 0 ? [] : [[severity, `${words} · ${count}`]];
}
