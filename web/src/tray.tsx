/** Rows that were chosen, added up or compared. */
import { useState } from "preact/hooks";
import type { Operation } from "./forms";
import { type Chosen, intervalOf } from "./interval";
import { showAnswer } from "./numbers";
import { type Shared, areaName, cellName, faultWords, groupLabel, reasonWords, useFound } from "./shared";
import { fill } from "./words";

const OPERATIONS: Operation[] = ["sum", "difference", "ratio", "share"];

export function Tray({ shared, chosen }: { shared: Shared; chosen: { key: string; one: Chosen }[] }) {
  const { release, words, locale, view, go } = shared;
  const [operation, setOperation] = useState<Operation>("sum");
  const key = `${chosen.map((one) => one.key).join("&")}/${operation}`;
  const found = useFound(() => intervalOf(release, chosen.map(({ one }) => one), operation), key);
  if (!chosen.length) return null;
  const several = new Set(chosen.map(({ one }) => one.table.side)).size > 1;
  return (
    <section class="tray" aria-label={words.chosen}>
      <ul>
        {chosen.map(({ key: own, one }) => {
          const of = several ? release.releases[one.table.side].folder : "";
          const told = [cellName(shared, one.table, one.cell), groupLabel(one.table, one.group), areaName(shared, one.area), of].filter(Boolean).join(", ");
          return (
            <li>
              <bdi>{told}</bdi>
              <button type="button" class="plain" aria-label={fill(words.remove, told)} onClick={() => go({ chosen: view.chosen.filter((other) => other !== own) })}>×</button>
            </li>
          );
        })}
      </ul>
      <div class="answer">
        <div role="group" aria-label={words.chosen}>
          {OPERATIONS.map((one) => (
            <button type="button" aria-pressed={one === operation} onClick={() => setOperation(one)}>{words[one]}</button>
          ))}
        </div>
        <p aria-live="polite">
          {found instanceof Error ? faultWords(words, found) : !found ? "" : typeof found === "string" ? reasonWords(words, found) : (
            <>
              {!Number.isNaN(found.estimate) && <strong>{showAnswer(found.estimate, found.estimate, operation, locale)}</strong>}{" "}
              {Number.isNaN(found.low) ? reasonWords(words, found.reason) : `${showAnswer(found.low, found.estimate, operation, locale)} – ${showAnswer(found.high, found.estimate, operation, locale)}`}
            </>
          )}
        </p>
        <button type="button" class="plain" onClick={() => go({ chosen: [] })}>{words.clearAll}</button>
      </div>
    </section>
  );
}
