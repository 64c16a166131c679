/** Shows a step where one is chosen: at the beginning, unless the address has a view of its own, and when another one is. */

import { useEffect, useRef } from "preact/hooks";
import type { Address } from "../app/address";
import { questions, type Choice } from "../contract";
import type { Stage } from "./stage";
import { useAsked } from "./useAsked";
import { around } from "./view";

const MOST = 1000;

export function useStep(stage: Stage | undefined, choice: Choice, words: Address["words"]): void {
  const step = /^\d{1,15}$/.test(words["step"] ?? "") ? (words["step"] ?? "") : "";
  const hasView = words["from"] !== undefined || words["at"] !== undefined || words["file"] !== undefined;
  const shown = useRef(hasView ? step : "");
  const name = `step ${step}`;
  const steps = useAsked(questions.timeline_search, step === "" ? undefined : { ...choice, text: name, kinds: "step", limit: MOST });
  const found = steps?.state === "ready" ? steps.answer.found.find((one) => one.name === name) : undefined;
  useEffect(() => {
    if (step === "") {
      shown.current = "";
    } else if (stage !== undefined && found !== undefined && shown.current !== step) {
      shown.current = step;
      stage.motion.go(around(found.startNs, found.endNs, stage.whole));
    }
  }, [stage, step, found]);
}
