/** What follows: the loss in words, what becomes unreliable by name, found strategies, and scenarios as columns. */
import { useState } from "preact/hooks";
import type { Compared, Exact, Form, Part, Settings, View } from "./server";
import { local } from "./said";
import { type Language, type Words, fill } from "./words";

const ROWS = 14;

export function Glance({ view, words, language }: { view: View; words: Words; language: Language }) {
  const epsilon = view.numbers.find((told) => /^ε (at|con)/.test(told.label));
  const { known, unreliable } = view.unreliable;
  return (
    <dl class="glance-numbers">
      <div><dt>{words.total}</dt><dd data-total={view.total} title={view.total}>{`${view.symbol} ${view.numbers[0]?.shown}`}</dd>
        <dd class="note">{epsilon && view.symbol === "ρ" ? `ε ${epsilon.shown}, δ ${epsilon.label.split("= ")[1]}` : (view.numbers[0]?.label ?? "")}</dd></div>
      {view.words.filter((word) => word.guess).map((word) => (
        <div class={word.guess === "100%" ? "alarm" : ""}><dt>{fill(words.guess, word.of)}</dt><dd>{word.guess}</dd><dd class="note">{word.guess === "100%" ? words.certain : words.coin}</dd></div>
      ))}
      {known > 0 && <div><dt>{words.unreliable}</dt><dd>{local(`${((100 * unreliable) / known).toFixed(1)}%`, language)}</dd>
        <dd class="note">{local(`${unreliable.toLocaleString("en")} / ${known.toLocaleString("en")}`, language)}</dd></div>}
    </dl>
  );
}

function nameOf(form: Form, name: string): string {
  const entry = form.entries.find((one) => one.name === name);
  if (!entry) return name;
  const several = Object.keys(form.tables).length > 1;
  return several ? `${form.tables[entry.table]}; ${form.levels[entry.level]}` : form.levels[entry.level];
}

function Bars({ parts, title, name, words }: { parts: Part[]; title: string; name(part: Part): string; words: Words }) {
  const [all, setAll] = useState(false);
  if (!parts.length) return null;
  return (
    <div>
      <table class="bars">
        <caption>{title}</caption>
        <tbody>
          {(all ? parts : parts.slice(0, 6)).map((part) => (
            <tr><th scope="row">{name(part)}</th><td class="figure">{`${part.number} / ${part.of}`}</td>
              <td class="drawn"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="10" class="of" /><rect width={100 * part.part} height="10" class="part" /></svg></td>
              <td class="figure">{part.share}</td></tr>
          ))}
        </tbody>
      </table>
      {parts.length > 6 && !all && <button type="button" class="plain" onClick={() => setAll(true)}>{fill(words.more, String(parts.length))}</button>}
    </div>
  );
}

export function Unreliable({ view, form, settings, words }: { view: View; form: Form; settings: Settings; words: Words }) {
  const { rows, areas, known } = view.unreliable;
  const made = view.unreliable.new.map((name) => nameOf(form, name));
  const entries = form.entries.filter((entry) => view.entries[entry.name]?.least);
  const [all, setAll] = useState(false);
  return (
    <section aria-labelledby="unreliable">
      <h2 id="unreliable">{words.unreliable}</h2>
      {made.length > 0 && <p class="alarm">{fill(words.newly, made.join(" · "))}</p>}
      {known > 0 ? <>
        <p class="note">{fill(words.isUnreliable, settings.fields.reliable)} {fill(words.counts, form.counts)}</p>
        {!rows.length && <p>{words.none}</p>}
        <Bars parts={rows} title={words.tables} name={(part) => nameOf(form, part.name)} words={words} />
        <Bars parts={areas} title={words.areas} name={(part) => part.name} words={words} />
      </> : <>
        <p class="note">{words.noCounts}</p>
        <table class="bars"><tbody>{(all ? entries : entries.slice(0, 6)).map((entry) => (
          <tr><th scope="row">{nameOf(form, entry.name)}</th><td class="figure">{local(view.entries[entry.name].least ?? "", words.locale)}</td></tr>
        ))}</tbody></table>
        {entries.length > 6 && !all && <button type="button" class="plain" onClick={() => setAll(true)}>{fill(words.more, String(entries.length))}</button>}
      </>}
    </section>
  );
}

export type Answer = { question: string; said: string; wrong: boolean } | null;

/** Each question stands beside its answer. */
export function Solutions({ view, answer, busy, solve, words }: {
  view: View; answer: Answer; busy: boolean; solve(question: string): void; words: Words;
}) {
  const offered = (["equal", "least", "sum", "max", "round"] as const).filter((one) => view.asks.includes(one) || answer?.question === one);
  if (!offered.length) return null;
  return (
    <section aria-labelledby="solve" class="solve">
      <h2 id="solve">{words.solve}</h2>
      <p class="note">{words.solveHint}</p>
      <ul>{offered.map((question) => (
        <li>
          <button type="button" aria-disabled={busy} data-question={question} onClick={() => { if (!busy) solve(question); }}>{words[question]}</button>
          <output class={answer?.question === question && answer.wrong ? "fault" : ""}>{answer?.question === question ? answer.said : ""}</output>
        </li>
      ))}</ul>
    </section>
  );
}

export function Scenarios({ compared, here, given, count, words, keep, take, remove }: {
  compared: Compared | null; here: string; given: number; count: number; words: Words; keep(): void; take(at: number): void; remove(at: number): void;
}) {
  const [all, setAll] = useState(false);
  const rows = compared?.rows ?? [];
  const [totals, margins] = [rows.filter((row) => row.part === "totals"), rows.filter((row) => row.part !== "totals")];
  const shown = all ? margins : margins.slice(0, ROWS);
  const line = (row: Compared["rows"][number]) => (
    <tr><th scope="row">{row.label}</th>{row.shown.map((text, at) => <td class="figure">{text}<small>{at && row.changes[at] !== "=" ? row.changes[at] : ""}</small></td>)}</tr>
  );
  return (
    <section aria-labelledby="columns">
      <h2 id="columns">{words.columns}</h2>
      <p><button type="button" id="keep" onClick={keep}>{words.keep}</button> <span class="note">{words.changes}</span></p>
      {compared && <div class="scroll" tabIndex={0} role="group" aria-label={words.columns}>
        <table class="columns">
          <thead><tr><td></td>{compared.names.map((name, at) => (
            <th scope="col">{at === 0 ? here : at <= given ? words[name as "began"] : name}
              {at > 0 && at <= given + count && <span class="acts"><button type="button" class="plain" aria-label={`${words.take}: ${at <= given ? words[name as "began"] : name}`} onClick={() => take(at - 1 - given)}>{words.take}</button>{" "}
                {at > given && <button type="button" class="plain" aria-label={`${words.remove}: ${name}`} onClick={() => remove(at - 1 - given)}>{words.remove}</button>}</span>}
            </th>))}</tr></thead>
          <tbody>{totals.map(line)}</tbody>
          {margins.length > 0 && <tbody><tr><th scope="rowgroup" colSpan={compared.names.length + 1} class="part">{words.difference}</th></tr>{shown.map(line)}</tbody>}
        </table>
      </div>}
      {margins.length > shown.length && <button type="button" class="plain" onClick={() => setAll(true)}>{fill(words.more, String(margins.length))}</button>}
    </section>
  );
}

export function Details({ view, exact, words }: { view: View; exact: Exact | null; words: Words }) {
  return (
    <>
      <section aria-labelledby="losses">
        <h2 id="losses">{words.losses}</h2>
        {view.words.map((word) => <p>{word.guess ? fill(words.attacker, word.change, word.guess) : word.change}{word.guess === "100%" && ` (${words.certain})`}</p>)}
        <p class="note">{view.symbol === "ρ" ? words.rho : ""}</p>
        <table class="bars"><tbody>
          {[...view.numbers, ...(exact?.exact ? [exact.exact] : [])].map((told) => (
            <tr><th scope="row">{told.label}<small>{told.note}</small></th><td class="figure" title={told.exact} data-label={told.label} data-exact={told.exact}>{told.shown}</td></tr>
          ))}
          {!exact && view.asks.includes("epsilon") && <tr><th scope="row">{words.exactEpsilon}</th><td class="figure">{words.waiting}</td></tr>}
        </tbody></table>
        {exact && exact.attributes.length > 0 && <table class="bars">
          <caption>{words.attributes}</caption>
          <thead><tr><th scope="col">{words.attribute}</th><th scope="col" class="figure">{view.symbol}</th><th scope="col" class="figure">{words.rightAtMost}</th></tr></thead>
          <tbody>{exact.attributes.map((one) => <tr><th scope="row">{one.name}</th><td class="figure" title={one.exact}>{one.loss}</td><td class="figure">{one.guess}</td></tr>)}</tbody>
        </table>}
      </section>
      {exact?.consequences.map((one) => {
        const heads = Object.keys(one.columns);
        return (
          <section aria-label={one.title}>
            <h2>{one.title}</h2><p class="note">{one.note}</p>
            <div class="scroll" tabIndex={0} role="group" aria-label={one.title}><table class="bars">
              <thead><tr>{heads.map((head, at) => <th scope="col" class={at ? "figure" : ""}>{head}</th>)}</tr></thead>
              <tbody>{one.columns[heads[0]].map((name, row) => (
                <tr><th scope="row">{name}</th>{heads.slice(1).map((head) => <td class="figure">{one.columns[head][row]}</td>)}</tr>
              ))}</tbody>
            </table></div>
          </section>
        );
      })}
    </>
  );
}
