/** The certificate in plain words, how a release was made, what is not protected, and how to cite. */
import { useState } from "preact/hooks";
import type { Budgets, Promise_, Told } from "./data";
import { type Shared, short } from "./shared";
import { type Words, fill } from "./words";

function changeWords(words: Words, unit: string, change: string): string {
  const sentence = { unbounded: words.added, bounded: words.changed, same_household: words.household }[change] ?? words.changed;
  return fill(sentence, words.units[unit] ?? `1 ${unit}`);
}

function Promised({ shared, promise, isLone }: { shared: Shared; promise: Promise_; isLone: boolean }) {
  const { words, locale } = shared;
  const digits = (value: number) => value.toLocaleString(locale, { maximumSignificantDigits: 4 });
  const symbol = promise.symbol === "rho" ? "ρ" : "ε";
  // Two ways of changing that an attacker finds out alike are told once.
  const worst = new Map<number, string>();
  for (const one of promise.attackers) if (!worst.has(one.right)) worst.set(one.right, one.change);
  return (
    <>
      {!isLone && <h3>{promise.part}</h3>}
      <p>{fill(words.words, words.units[promise.unit] ?? promise.unit)}</p>
      {!promise.attackers.length && <p><strong>{words.nothing}</strong></p>}
      {[...worst].map(([right, change]) => (
        <p>{fill(words.guess, changeWords(words, promise.unit, change), right.toLocaleString(locale, { style: "percent", maximumFractionDigits: 1 }))}{right > 0.95 && <> <strong>{words.weak}</strong></>}</p>
      ))}
      {promise.loss !== null && (
        <p class="note">
          {fill(words.lossIs, `${symbol} = ${digits(promise.loss)}`, changeWords(words, promise.unit, promise.change))}{" "}
          {promise.epsilon !== null && fill(words.epsilonIs, digits(promise.epsilon), "10⁻¹⁰")} {words.more_}
        </p>
      )}
    </>
  );
}

function Measured({ shared, budgets, release, isLone }: { shared: Shared; budgets: Budgets; release: string; isLone: boolean }) {
  const { words, locale } = shared;
  const digits = (value: number | null) => (value === null ? "\u2013" : value.toLocaleString(locale, { maximumSignificantDigits: 4 }));
  const isCompared = budgets.compared && !budgets.same;
  return (
    <>
      {!isLone && <h3>{budgets.part}</h3>}
      {budgets.same && <p>{words.sameAsBefore}</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label={[words.budgets, release, budgets.part].filter(Boolean).join(": ")}>
        <table class="budgets">
          <thead><tr>
            <th scope="col">{words.table}</th><th scope="col">{words.level}</th><th scope="col">{words.answers}</th><th scope="col">{fill(words.budgetOf, budgets.symbol)}</th>
            <th scope="col">{fill(words.marginAt, budgets.confidence.toLocaleString(locale, { style: "percent" }))}</th>{isCompared && <th scope="col">{words.before}</th>}
          </tr></thead>
          <tbody>
            {budgets.rows.map((row) => (
              <tr>
                <th scope="row"><bdi>{short(row.table)}</bdi>{row.name !== row.table && <> <small>{row.name}</small></>}</th><td><bdi>{short(row.level)}</bdi></td><td>{row.answers.toLocaleString(locale)}</td><td>{digits(row.budget)}</td><td>{digits(row.margin)}</td>
                {isCompared && <td>{digits(row.before)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">{words.finished}</p>
    </>
  );
}

function OfRelease({ shared, told }: { shared: Shared; told: Told }) {
  const { words } = shared;
  const several = shared.release.releases.length > 1;
  const citation = fill(words.citation, told.title, told.folder, told.created.slice(0, 10), told.software, told.sha256);
  const [isCopied, setCopied] = useState(false);
  const all = (pick: (one: Promise_) => string[]) => [...new Set(told.promises.flatMap(pick))];
  const [known, kept] = [all((one) => one.public), all((one) => one.invariants)];
  return (
    <article>
      {several && <h2>{told.folder}</h2>}
      <h2>{words.promise}</h2>
      {told.promises.map((promise) => <Promised shared={shared} promise={promise} isLone={told.promises.length === 1} />)}
      {!told.promises.length && told.status.words !== "CONFIDENTIAL" && <p>{words.noPlan}</p>}
      <h2>{words.open}</h2>
      <ul><li>{words.openGroups}</li><li>{words.openSeveral}</li><li>{words.openErrors}</li></ul>
      {known.length > 0 && <><p>{words.openPublic}</p><ul>{known.map((one) => <li><bdi>{one}</bdi></li>)}</ul></>}
      {kept.length > 0 && <><p>{words.openInvariants}</p><ul>{kept.map((one) => <li><bdi>{one}</bdi></li>)}</ul></>}
      <h2>{words.made}</h2>
      <p>{fill(words.madeWith, told.software, told.created.slice(0, 10), told.status.words)}{told.treated.length > 0 && ` ${fill(words.treatedBy, told.treated.join(", "))}`}</p>
      {told.leftOut && <p>{words.leftOut}</p>}
      {told.madeOf && <p>{fill(words.madeOf, told.madeOf)}</p>}
      {told.status.reasons.length > 0 && <><p>{words.notFor}</p><ul>{told.status.reasons.map((reason) => <li><bdi>{reason}</bdi></li>)}</ul></>}
      {told.budgets.length > 0 && <h2>{words.budgets}</h2>}
      {told.budgets.map((budgets) => <Measured shared={shared} budgets={budgets} release={told.folder} isLone={told.budgets.length === 1} />)}
      <h2>{words.cite}</h2>
      <p class="citation">{citation}</p>
      <p><button type="button" onClick={() => void navigator.clipboard?.writeText(citation).then(() => setCopied(true))}>{isCopied ? words.copied : words.copy}</button></p>
    </article>
  );
}

export function About({ shared }: { shared: Shared }) {
  return <div class="about"><h1>{shared.words.about}</h1>{shared.release.releases.map((told) => <OfRelease shared={shared} told={told} />)}</div>;
}
