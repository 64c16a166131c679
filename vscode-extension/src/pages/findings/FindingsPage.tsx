/** All advice, the largest saving first. */

import type { JSX } from "preact";
import { choiceOf } from "../app/address";
import type { PageProps } from "../app/registry";
import { questions } from "../contract";
import { Answer } from "../parts/Answered";
import { useAnswer } from "../source/useAnswer";
import { FindingCard } from "./FindingCard";

export function FindingsPage({ address }: PageProps): JSX.Element {
  const found = useAnswer(questions.findings, choiceOf(address));
  return (
    <Answer of={found}>
      {({ findings }) =>
        findings.length === 0 ? (
          <p class="muted">Nothing was found that would pay to change.</p>
        ) : (
          <div class="stack">
            {findings.map((one) => (
              <FindingCard key={`${one.code} ${one.file}:${one.line}`} of={one} />
            ))}
          </div>
        )
      }
    </Answer>
  );
}
