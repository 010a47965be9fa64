/** Rows that were chosen, added up or compared. */
import { useState } from "preact/hooks";
import type { Operation } from "./forms";
import { type Chosen, intervalOf } from "./interval";
import { showAnswer } from "./numbers";
import { type Shared, areaName, cellName, faultWords, groupLabel, reasonWords, short, useFound } from "./shared";
import { fill } from "./words";

const OPERATIONS: Operation[] = ["sum", "difference", "ratio", "share"];

const SIGNS = { sum: " + ", difference: " - ", ratio: " / ", share: " % " };

/** What gives the interval of counts of TopDown: of one area by its code, of others in the words of the documentation. */
function commandOf({ release, areas }: Shared, chosen: Chosen[], operation: Operation): string {
  const folder = release.releases[0].folder;
  const [{ table, area }] = chosen;
  const isOne = chosen.every((one) => one.area === area && one.table.columns[0]?.name === "variable");
  if (!isOne) return `yupana interval ${folder} --query QUERY --noisy-measurements DIR`;
  const [first, ...rest] = chosen.map((one) => one.table.columns[0].codes[one.table.cells[one.cell][0]]);
  const others = operation === "ratio" || operation === "share" ? [rest.length > 1 ? `(${rest.join(" + ")})` : rest[0]] : rest;
  const kind = release.kinds[areas.kind[area]].name;
  return `yupana interval ${folder}${table.part ? `/${table.part}` : ""} --area ${kind}=${areas.code[area]} --query "${[first, ...others].join(SIGNS[operation])}" --noisy-measurements DIR`;
}

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
          const told = [cellName(shared, one.table, one.cell), short(groupLabel(one.table, one.group)), areaName(shared, one.area), of].filter(Boolean).join(", ");
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
              {!Number.isNaN(found.low) && `${showAnswer(found.low, found.estimate, operation, locale)} – ${showAnswer(found.high, found.estimate, operation, locale)}`}{" "}
              {found.reason && <span class="note">{reasonWords(words, found.reason)}{found.measured !== undefined && ` ${fill(words.measuredIs, showAnswer(found.measured, found.estimate, operation, locale))}`} {found.reason === "topdown" && <code>{commandOf(shared, chosen.map(({ one }) => one), operation)}</code>}</span>}
            </>
          )}
        </p>
        <button type="button" class="plain" onClick={() => go({ chosen: [] })}>{words.clearAll}</button>
      </div>
    </section>
  );
}
