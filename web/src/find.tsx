/** Finding by typing: one field with a list of what fits. */
import { useMemo, useState } from "preact/hooks";
import { type Table, areasOf } from "./data";
import { type Shared, areaName, groupLabel, kindName, short, titleOf, wholeName } from "./shared";
import { type View, areaKey, tableKey } from "./state";
import { fill } from "./words";

export function fold(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

interface Hit { label: string; detail: string; take(): void }

/** A field whose list opens as one types, or as one enters it where it holds a choice. */
export function Finder({ id, label, find, shown = "", hidden = false }: { id: string; label: string; find(words: string[]): Hit[]; shown?: string; hidden?: boolean }) {
  const [text, setText] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const isOpen = text !== null && (text !== "" || shown !== "");
  const hits = useMemo(() => (isOpen ? find(fold(text!).split(/\s+/).filter(Boolean)) : []), [text, find]);
  const take = (hit: Hit) => { hit.take(); setText(null); };
  return (
    <div class="finder">
      <label for={id} class={hidden ? "unseen" : ""}>{label}</label>
      <input
        id={id} type="text" role="combobox" aria-expanded={isOpen} aria-controls={`${id}-hits`} aria-autocomplete="list" placeholder={hidden ? label : shown}
        aria-activedescendant={isOpen && hits.length ? `${id}-${at}` : undefined} value={text ?? shown} autocomplete="off" spellcheck={false}
        onFocus={(event) => { if (shown) { setText(""); setAt(0); event.currentTarget.select(); } }}
        onBlur={() => setText(null)}
        onInput={(event) => { setText(event.currentTarget.value); setAt(0); }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") { if (text === null) setText(""); setAt(Math.min(at + 1, hits.length - 1)); event.preventDefault(); }
          if (event.key === "ArrowUp") { setAt(Math.max(at - 1, 0)); event.preventDefault(); }
          if (event.key === "Enter" && hits[at]) { take(hits[at]); event.preventDefault(); }
          if (event.key === "Escape") setText(null);
        }}
      />
      <ul id={`${id}-hits`} role="listbox" aria-label={label} hidden={!isOpen}>
        {hits.map((hit, place) => (
          <li id={`${id}-${place}`} role="option" aria-selected={place === at} onMouseDown={(event) => { event.preventDefault(); take(hit); }}>
            <bdi>{hit.label}</bdi> <small>{hit.detail}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Finds tables, areas and groups of the release. */
export function Search({ shared }: { shared: Shared }) {
  const { release, areas, words, go } = shared;
  const folded = useMemo(() => areas.code.map((code, place) => fold(`${wholeName(shared, place)} ${code}`)), [areas, words]);
  const others = useMemo(() => {
    const found: { text: string; hit: Hit }[] = [];
    const add = (label: string, detail: string, to: Partial<View>) =>
      found.push({ text: fold(`${label} ${detail}`), hit: { label: short(label), detail, take: () => go(to) } });
    const own = release.tables.filter((table) => !table.side);
    for (const table of own) add(titleOf(shared, table), `${words.table} ${tableKey(table)}`, { table: tableKey(table), view: "table", cell: "", share: "", across: "" });
    const groups = new Map<string, string>();
    for (const table of own) table.groups?.codes.forEach((code, place) => groups.set(code, groupLabel(table, place)));
    for (const [code, label] of groups) add(label, `${words.group} ${code}`, { group: code });
    return found;
  }, [release, words, go]);
  const find = useMemo(() => (wanted: string[]) => {
    const fits = (text: string) => wanted.every((one) => text.includes(one));
    const found = others.filter((one) => fits(one.text)).slice(0, 10).map((one) => one.hit);
    for (let place = 0; place < folded.length && found.length < 20; place++) {
      if (!fits(folded[place])) continue;
      const detail = `${kindName(shared, areas.kind[place])} ${areas.code[place]}`;
      found.push({ label: areaName(shared, place), detail, take: () => go({ area: areaKey(release, areas, place), view: "table" }) });
    }
    return found.length ? found : [{ label: words.none, detail: "", take: () => undefined }];
  }, [others, folded]);
  return <div class="search" role="search"><Finder id="search" label={words.search} find={find} hidden /></div>;
}

/** Chooses an area of a table. */
export function AreaPicker({ shared, table, label, area, id, onPick }: { shared: Shared; table: Table; label: string; area: number; id: string; onPick(area: number): void }) {
  const { areas, words } = shared;
  const all = useMemo(() => {
    const kinds = kindsOf(shared, table);
    const rank = new Map(kinds.map((kind, at) => [kind, at]));
    const found = areasOf(table).slice();
    return found.sort((a, b) => rank.get(areas.kind[a])! - rank.get(areas.kind[b])! || a - b).map((one) => ({ one, text: fold(`${wholeName(shared, one)} ${areas.code[one]}`) }));
  }, [table, words]);
  const find = useMemo(() => (wanted: string[]) => {
    const found: Hit[] = [];
    for (const { one, text } of all) {
      if (!wanted.every((word) => text.includes(word))) continue;
      found.push({ label: areaName(shared, one), detail: `${kindName(shared, areas.kind[one])} ${areas.code[one]}`, take: () => onPick(one) });
      if (found.length >= 60) { found.push({ label: "…", detail: fill(words.of, 60, all.length), take: () => undefined }); break; }
    }
    return found.length ? found : [{ label: words.none, detail: "", take: () => undefined }];
  }, [all, onPick]);
  return <Finder id={id} label={label} find={find} shown={area < 0 ? words.add : areaName(shared, area)} />;
}

const kindsKnown = new WeakMap<Table, number[]>();
/** The kinds of areas of a table, those of fewest areas first. */
export function kindsOf({ areas }: Shared, table: Table): number[] {
  let found = kindsKnown.get(table);
  if (!found) {
    const met = new Map<number, number>();
    for (const area of areasOf(table)) met.set(areas.kind[area], (met.get(areas.kind[area]) ?? 0) + 1);
    found = [...met.keys()].sort((a, b) => met.get(a)! - met.get(b)!);
    kindsKnown.set(table, found);
  }
  return found;
}

export function Picker({ label, value, of, name, onPick }: { label: string; value: number; of: number[]; name(one: number): string; onPick(one: number): void }) {
  return (
    <label>{label}
      <select value={value} onChange={(event) => onPick(Number(event.currentTarget.value))}>
        {of.map((one) => <option value={one}>{name(one)}</option>)}
      </select>
    </label>
  );
}
