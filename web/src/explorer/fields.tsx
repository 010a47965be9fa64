/** The fields: a total, budgets and margins by groups that can be dragged, and options. */
import { useId, useState } from "preact/hooks";
import type { Fault, Field, Form, Settings, Typed, View } from "./server";
import { type Words, fill } from "./words";

export type Kind = "table" | "level";
export interface Fields {
  form: Form; settings: Settings; view: View | null; faults: Fault[]; words: Words; symbol: string;
  /** Changes settings; while something is dragged, `done` is false, and all of it is one step to undo. */
  change(settings: Settings, done?: boolean): void;
  /** Asks the server for settings; `base` is what a drag began with. */
  solve(question: Record<string, unknown>, done?: boolean): void;
}

const LOWEST = 1, HIGHEST = 100_000, STEPS = 1000;

/** A number that is dragged on a logarithmic scale; it becomes a decimal of three digits. */
export function LogRange({ label, value, low = LOWEST, high = HIGHEST, onDrag }: {
  label: string; value: number; low?: number; high?: number; onDrag(text: string, done: boolean): void;
}) {
  const place = Number.isFinite(value) && value > 0 ? (STEPS * Math.log(value / low)) / Math.log(high / low) : STEPS / 2;
  const text = (at: string) => {
    const found = low * (high / low) ** (Number(at) / STEPS);
    return found >= 1000 ? String(Math.round(found)) : String(Number(found.toPrecision(3)));
  };
  return (
    <input type="range" min="0" max={STEPS} step="any" value={Math.min(STEPS, Math.max(0, place))} aria-label={label}
      aria-valuetext={Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "?"}
      onKeyDown={(event) => {
        const step = { ArrowRight: 5, ArrowUp: 5, ArrowLeft: -5, ArrowDown: -5, PageUp: 50, PageDown: -50 }[event.key];
        if (!step) return;
        event.preventDefault();
        onDrag(text(String(Math.min(STEPS, Math.max(0, place + step)))), true);
      }}
      onInput={(event) => onDrag(text(event.currentTarget.value), false)} onChange={(event) => onDrag(text(event.currentTarget.value), true)} />
  );
}

/** A number as the server reads it: in Spanish a comma may stand for the point. */
const typedNumber = (text: string) => (document.documentElement.lang === "es" ? text.replace(/^\s*(\d*),(\d+)\s*$/, "$1.$2") : text);

/** A text that shows what the server says unless somebody types into it. */
function Exact({ label, value, exact, given, fault, placeholder, onType }: {
  label: string; value: string; exact?: string; given?: boolean; fault?: string; placeholder?: string; onType(text: string): void;
}) {
  const [typing, setTyping] = useState<string | null>(null);
  return (
    <input type="text" inputMode="decimal" autocomplete="off" spellcheck={false} aria-label={label} class={given ? "given" : ""}
      aria-invalid={fault ? "true" : undefined} title={exact} data-exact={exact} placeholder={placeholder} value={typing ?? value}
      onFocus={() => setTyping(value)} onBlur={() => setTyping(null)}
      onInput={(event) => { setTyping(event.currentTarget.value); onType(typedNumber(event.currentTarget.value)); }} />
  );
}

function Row({ fields, name, label }: { fields: Fields; name: string; label: string }) {
  const { settings, view, words, symbol, change } = fields;
  const typed = settings.entries[name];
  const told = view?.entries[name];
  const fault = fields.faults.filter((one) => one.field === name).map((one) => one.message).join(" ");
  const set = (part: Partial<Typed>, done = true) =>
    change({ ...settings, entries: { ...settings.entries, [name]: { ...typed, ...part } } }, done);
  const shown = (by: "budget" | "margin") => {
    if (!typed.on) return "";
    if (typed.by === by && (fault || (!told && typed.value.length <= 12))) return typed.value;
    return told?.[by] ?? "";
  };
  const off = typed.on ? "" : words.off;
  return (
    <li class={`row${typed.on ? "" : " off"}`} data-entry={name}>
      <label class="switch"><input type="checkbox" checked={typed.on} aria-label={fill(words.measure, `${label}, ${name}`)} onChange={(event) => set({ on: event.currentTarget.checked })} />
        <span>{label}</span></label>
      <LogRange label={`${words.margin}: ${name}`} value={Number(told?.margin_exact || "NaN")} onDrag={(text, done) => set({ on: true, by: "margin", value: text }, done)} />
      <span class="pair"><span aria-hidden="true">±</span>
        <Exact label={`${words.margin} ${words.of} ${name}`} value={shown("margin")} exact={told?.margin_exact} given={typed.by === "margin"} fault={typed.by === "margin" ? fault : ""}
          placeholder={off} onType={(text) => set({ on: true, by: "margin", value: text })} /></span>
      <span class="pair"><span aria-hidden="true">{symbol}</span>
        <Exact label={`${words.budget} ${words.of} ${name}`} value={shown("budget")} exact={told?.budget_exact} given={typed.by === "budget"} fault={typed.by === "budget" ? fault : ""}
          placeholder={off} onType={(text) => set({ on: true, by: "budget", value: text })} /></span>
      {fault && <p class="fault" role="alert">{fault}</p>}
    </li>
  );
}

function Group({ fields, kind, group, label, names, opened }: {
  fields: Fields; kind: Kind; group: string; label: string; names: string[]; opened: boolean;
}) {
  const { form, settings, view, words, change, solve } = fields;
  const [open, setOpen] = useState(opened);
  const id = useId();
  const on = names.filter((name) => settings.entries[name].on);
  const share = view?.groups[kind][group];
  const margins = on.map((name) => Number(view?.entries[name]?.margin_exact || "NaN")).filter(Number.isFinite);
  const [low, high] = [Math.min(...margins), Math.max(...margins)];
  const short = (value: number) => value >= 1000 ? value.toLocaleString(words.locale, { notation: "compact", maximumSignificantDigits: 2 }) : Number(value.toPrecision(3)).toLocaleString(words.locale, { maximumFractionDigits: 2 });
  const same = margins.length > 0 && low === high;
  const entries = (part: Partial<Typed>) =>
    Object.fromEntries(names.map((name) => [name, { ...settings.entries[name], ...(settings.entries[name].on || part.on !== undefined ? part : {}) }]));
  const set = (part: Partial<Typed>, done = true) => change({ ...settings, entries: { ...settings.entries, ...entries(part) } }, done);
  const faulty = fields.faults.some((fault) => names.includes(fault.field));
  const several = Object.keys(view?.groups[kind] ?? {}).length > 1;
  const other: Kind = kind === "table" ? "level" : "table";
  const labels = kind === "table" ? form.levels : form.tables;
  return (
    <section class="group" aria-labelledby={`${id}-name`} data-group={group}>
      <div class="head">
        <input type="checkbox" checked={on.length > 0} aria-label={fill(words.measure, label)}
          ref={(node) => { if (node) node.indeterminate = on.length > 0 && on.length < names.length; }} onChange={(event) => set({ on: event.currentTarget.checked })} />
        <button type="button" class="plain name" id={`${id}-name`} aria-expanded={open || faulty} aria-controls={`${id}-rows`} aria-label={label} onClick={() => setOpen(!open)}>
          <span aria-hidden="true">{open || faulty ? "▾" : "▸"}</span> {label} <small>{on.length}/{names.length}</small></button>
        {several && on.length > 0 && <input type="range" class="share" min="0.1" max="99.9" step="0.1" value={Number(share?.share ?? 0)} aria-label={`${words.share}: ${label}`} aria-valuetext={`${share?.share ?? 0}%`}
          onInput={(event) => solve({ question: "share", names: on, value: event.currentTarget.value }, false)}
          onChange={(event) => solve({ question: "share", names: on, value: event.currentTarget.value })} />}
        {several && on.length > 0 && <span class="pair"><Exact label={`${words.share} ${words.of} ${label}`} value={share?.share ?? ""} exact={share?.exact} onType={(text) => Number(text) > 0 && Number(text) < 100 && solve({ question: "share", names: on, value: text })} /><span aria-hidden="true">%</span></span>}
      </div>
      {names.length > 1 && on.length > 0 && <div class="head margins">
        <span class="what">{words.every}</span>
        <LogRange label={`${words.every}: ${label}`} value={Math.sqrt(low * high)} onDrag={(text, done) => set({ by: "margin", value: text }, done)} />
        <span class="pair"><span aria-hidden="true">±</span><Exact label={`${words.every} ${words.of} ${label}`} value={same ? String(low) : ""} placeholder={margins.length ? `${short(low)}–${short(high)}` : ""}
          onType={(text) => text && set({ by: "margin", value: text })} /></span>
      </div>}
      {(open || faulty) && <ul id={`${id}-rows`} class="rows">
        {names.map((name) => {
          const entry = form.entries.find((one) => one.name === name)!;
          return <Row key={name} fields={fields} name={name} label={labels[entry[other]] ?? entry[other]} />;
        })}
      </ul>}
    </section>
  );
}

export function Groups({ fields, kind }: { fields: Fields; kind: Kind }) {
  const { form } = fields;
  const labels = kind === "table" ? form.tables : form.levels;
  const groups = Object.keys(labels);
  return (
    <div class="groups">
      {groups.map((group) => {
        const names = form.entries.filter((entry) => entry[kind] === group).map((entry) => entry.name);
        return <Group key={`${form.key} ${kind} ${group}`} fields={fields} kind={kind} group={group} label={labels[group]} names={names} opened={groups.length === 1 || names.length === 1} />;
      })}
    </div>
  );
}

function OptionField({ fields, field }: { fields: Fields; field: Field }) {
  const { settings, change } = fields;
  const id = `field-${field.key.replace(/[^A-Za-z0-9]/g, "_")}`;
  const fault = fields.faults.filter((one) => one.field === field.key).map((one) => one.message).join(" ");
  const set = (value: string) => change({ ...settings, fields: { ...settings.fields, [field.key]: value } });
  const shared = { id, "data-field": field.key, value: settings.fields[field.key], "aria-invalid": fault ? ("true" as const) : undefined, "aria-describedby": fault ? `${id}-fault` : undefined };
  return (
    <div class="option">
      <label for={id}>{field.label}</label>
      {Object.keys(field.choices).length
        ? <select {...shared} onChange={(event) => set(event.currentTarget.value)}>{Object.entries(field.choices).map(([key, words]) => <option value={key}>{words}</option>)}</select>
        : <input type="text" {...shared} autocomplete="off" spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />}
      {field.hint && <small>{field.hint}</small>}
      {fault && <p class="fault" role="alert" id={`${id}-fault`}>{fault}</p>}
    </div>
  );
}

export function Options({ fields }: { fields: Fields }) {
  // A delta is of zCDP alone.
  const offered = fields.form.fields.filter((field) => field.key !== "delta" || fields.symbol === "ρ" || fields.faults.some((fault) => fault.field === "delta"));
  const groups = [...new Set(offered.map((field) => field.group))];
  const faulty = fields.form.fields.some((field) => fields.faults.some((fault) => fault.field === field.key));
  return (
    <details class="options" ref={(node) => { if (node && faulty) node.open = true; }}>
      <summary>{fields.words.options}</summary>
      {groups.map((group) => (
        <fieldset>
          <legend class={group ? "" : "unseen"}>{group || fields.words.options}</legend>
          {offered.filter((field) => field.group === group).map((field) => <OptionField key={field.key} fields={fields} field={field} />)}
        </fieldset>
      ))}
    </details>
  );
}

/** The total: it scales every budget alike. */
export function Total({ fields }: { fields: Fields }) {
  const { view, words, symbol, solve, faults } = fields;
  const [epsilon, setEpsilon] = useState("");
  const fault = (field: string) => faults.filter((one) => one.field === field).map((one) => one.message).join(" ");
  const grouped = view?.numbers[0]?.shown ?? "";
  const shown = words.locale === "es" ? grouped.replaceAll(".", "").replace(",", ".") : grouped.replaceAll(",", "");
  const total = view ? Number(view.frontier.here[0]) : NaN;
  return (
    <section class="group whole" aria-label={words.total}>
      <div class="head">
        <span class="name"><strong>{words.total}</strong></span>
        <LogRange label={`${words.total} ${symbol}`} value={total} low={0.001} high={100} onDrag={(text, done) => solve({ question: "total", value: text }, done)} />
        <span class="pair"><span aria-hidden="true">{symbol}</span><Exact label={`${words.total} ${symbol}`} value={shown} exact={view?.total} fault={fault("total")} onType={(text) => text && solve({ question: "total", value: text })} /></span>
      </div>
      {symbol === "ρ" && <form class="head epsilon" onSubmit={(event) => { event.preventDefault(); solve({ question: "epsilon", value: typedNumber(epsilon) }); }}>
        <label for="epsilon">{words.exactEpsilon}</label>
        <span class="pair"><input id="epsilon" type="text" inputMode="decimal" autocomplete="off" value={epsilon} aria-invalid={fault("epsilon") ? "true" : undefined} onInput={(event) => setEpsilon(event.currentTarget.value)} /></span>
        <button type="submit">{words.set}</button>
      </form>}
      {(fault("total") || fault("epsilon") || fault("share")) && <p class="fault" role="alert">{fault("total")}{fault("epsilon")}{fault("share")}</p>}
    </section>
  );
}
