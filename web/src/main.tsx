import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ticks } from "d3-array";
import { type Areas, type Outlines, type Release, type Row, type Table, loadMap, loadRelease, rowsOfArea, rowsOfCell } from "./data";
import { MapOf } from "./map";
import { saveCsv } from "./save";
import { type Chosen, type Found, type Operation, intervalOf } from "./interval";
import { type View, areaKey, areaName, areaOf, readView, writeView } from "./state";
import { type Language, type Words, languages } from "./words";

interface Shared { release: Release; areas: Areas; words: Words; language: Language; view: View; go(to: Partial<View>): void }

const SHOWN = 400;

function number(value: number, language: Language): string {
  if (Number.isNaN(value)) return "";
  const digits = Number.isInteger(value) ? 0 : 2;
  return value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** One scale for all bars of a table, which begins at 0 unless a number lies below. */
function scaleOf(rows: Row[]): { low: number; high: number; at(value: number): number; marks: number[] } {
  let low = 0, high = 1;
  for (const row of rows) {
    for (const end of [row.value, row.low, row.high]) {
      if (end < low) low = end;
      if (end > high) high = end;
    }
  }
  const marks = ticks(low, high, 4);
  const span = high - low || 1;
  return { low, high, at: (value) => (100 * (value - low)) / span, marks };
}
type Scale = ReturnType<typeof scaleOf>;

function Axis({ scale, language }: { scale: Scale; language: Language }) {
  return (
    <div class="axis" aria-hidden="true">
      {scale.marks.map((mark) => (
        <span style={{ left: `${scale.at(mark)}%` }}>{mark.toLocaleString(language, { notation: "compact" })}</span>
      ))}
    </div>
  );
}

function Bar({ row, scale }: { row: Row; scale: Scale }) {
  const has = !Number.isNaN(row.low) && !Number.isNaN(row.high);
  const low = has ? scale.at(Math.max(row.low, scale.low)) : 0;
  const wide = has ? Math.max(scale.at(Math.min(row.high, scale.high)) - low, 0.4) : 0;
  return (
    <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      {scale.marks.map((mark) => <line x1={scale.at(mark)} x2={scale.at(mark)} y1="0" y2="10" class="grid" />)}
      {has && <rect x={low} width={wide} y="3" height="4" class="interval" />}
      {!Number.isNaN(row.value) && <rect x={scale.at(row.value) - 0.25} width="0.5" y="1" height="8" class="point" />}
    </svg>
  );
}

function labelOf(table: Table, cell: number): string[] {
  return table.columns.map((column, at) => column.labels[table.cells[cell][at]] || column.codes[table.cells[cell][at]]);
}

function groupLabel(table: Table, group: number): string {
  return table.groups ? table.groups.labels[group] || table.groups.codes[group] : "";
}

function rowKey(shared: Shared, table: Table, row: Row): string {
  const group = table.groups ? table.groups.codes[row.group] : "";
  return [table.id, areaKey(shared.release, shared.areas, row.area), group, row.cell].join("|");
}

function chosenOf(shared: Shared, key: string): Chosen | null {
  const [id, area, group, cell] = key.split("|");
  const table = shared.release.tables.find((one) => one.id === id);
  const place = areaOf(shared.release, shared.areas, area ?? "");
  if (!table || place < 0 || !(Number(cell) < table.cells.length)) return null;
  const at = table.groups ? table.groups.codes.indexOf(group) : 0;
  return at < 0 ? null : { table: id, area: place, group: at, cell: Number(cell) };
}

/** A table as it is read: its rows for one area and one group. */
function Reading({ shared, table, area, group }: { shared: Shared; table: Table; area: number; group: number }) {
  const { words, language, view, go } = shared;
  const rows = useRows(() => rowsOfArea(table, area), `${table.id}/${area}`);
  if (typeof rows === "string") return <p class="note" role="alert">{rows}</p>;
  const shown = rows?.filter((row) => row.group === group) ?? [];
  if (rows && !shown.length) return <p class="note">{words.noRows}</p>;
  const scale = scaleOf(shown);
  const isChosen = new Set(view.chosen);
  const choose = (key: string) => go({ chosen: isChosen.has(key) ? view.chosen.filter((one) => one !== key) : [...view.chosen, key] });
  return (
    <div class="scroll">
      <table class="reading" aria-busy={!rows}>
        <thead>
          <tr>
            <th class="pick"><span class="unseen">{words.chosen}</span></th>
            {table.columns.length ? table.columns.map((column) => <th scope="col">{column.title}</th>) : <th scope="col">{words.cell}</th>}
            <th scope="col" class="figure">{words.estimate}</th>
            <th scope="col" class="figure">{table.noisy ? words.margin : words.interval}</th>
            <th scope="col" class="drawn"><span class="unseen">{words.interval}</span><Axis scale={scale} language={language} /></th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => {
            const labels = table.columns.length ? labelOf(table, row.cell) : [table.title];
            const key = rowKey(shared, table, row);
            const depth = table.depths[row.cell] ?? 0;
            return (
              <tr class={isChosen.has(key) ? "chosen" : ""}>
                <td class="pick">
                  <input type="checkbox" checked={isChosen.has(key)} onChange={() => choose(key)} aria-label={labels.join(", ")} />
                </td>
                {labels.map((label, at) => at === 0
                  ? <th scope="row" class={`depth-${Math.min(depth, 4)}`} dir="auto">{label}</th> : <td dir="auto">{label}</td>)}
                <td class="figure">{Number.isNaN(row.value) ? words.suppressed : number(row.value, language)}</td>
                <td class="figure quiet">{intervalWords(row, table, language)}</td>
                <td class="drawn"><Bar row={row} scale={scale} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="note"><button type="button" class="plain" onClick={() => saveCsv(`${table.name}.csv`, [...table.columns.map((column) => column.title), words.estimate, "low", "high"], shown.map((row) => [...labelOf(table, row.cell), row.value, row.low, row.high]))}>{words.save}</button></p>
    </div>
  );
}

function intervalWords(row: Row, table: Table, language: Language): string {
  if (Number.isNaN(row.low)) return "";
  if (table.noisy) return `± ${number(row.high - row.value, language)}`;
  return `${number(row.low, language)} – ${number(row.high, language)}`;
}

/** One row of a table in all areas of a kind. */
function Compared({ shared, table, group, cell, kind }: { shared: Shared; table: Table; group: number; cell: number; kind: number }) {
  const { words, language, release, areas, go } = shared;
  const [byName, setByName] = useState(false);
  const [most, setMost] = useState(SHOWN);
  const rows = useRows(() => rowsOfCell(table, group, cell), `${table.id}/${group}/${cell}`);
  if (typeof rows === "string") return <p class="note" role="alert">{rows}</p>;
  const of = (rows ?? []).filter((row) => areas.kind[row.area] === kind);
  const scale = scaleOf(of);
  if (byName) of.sort((a, b) => areaName(release, areas, a.area).localeCompare(areaName(release, areas, b.area), language));
  else of.sort((a, b) => b.value - a.value);
  const map = useMap(release.maps[String(kind)]);
  return (
    <div class="scroll">
      {map && <MapOf outlines={map} rows={of} title={`${table.title}: ${labelOf(table, cell).join(", ")}`} words={words} language={language} name={(one) => areaName(release, areas, one)} onPick={(one) => go({ view: "table", area: areaKey(release, areas, one) })} />}
      <p class="note">
        {`${Math.min(most, of.length).toLocaleString(language)} ${words.of} ${of.length.toLocaleString(language)} · `}
        <button type="button" class="plain" onClick={() => setByName(!byName)}>{byName ? words.sorted : words.byName}</button>
        {" · "}
        <button type="button" class="plain" onClick={() => saveCsv(`${table.name}-areas.csv`, [words.area, words.estimate, "low", "high"], of.map((row) => [areas.code[row.area], row.value, row.low, row.high]))}>{words.save}</button>
      </p>
      <table class="reading" aria-busy={!rows}>
        <thead>
          <tr>
            <th scope="col">{words.area}</th><th scope="col" class="figure">{words.estimate}</th>
            <th scope="col" class="figure">{table.noisy ? words.margin : words.interval}</th>
            <th scope="col" class="drawn"><span class="unseen">{words.interval}</span><Axis scale={scale} language={language} /></th>
          </tr>
        </thead>
        <tbody>
          {of.slice(0, most).map((row) => (
            <tr>
              <th scope="row" dir="auto">
                <button type="button" class="plain" onClick={() => go({ view: "table", area: areaKey(release, areas, row.area) })}>
                  {areaName(release, areas, row.area)}
                </button>
              </th>
              <td class="figure">{Number.isNaN(row.value) ? words.suppressed : number(row.value, language)}</td>
              <td class="figure quiet">{intervalWords(row, table, language)}</td>
              <td class="drawn"><Bar row={row} scale={scale} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {most < of.length && <p><button type="button" onClick={() => setMost(most + SHOWN)}>{words.more}</button></p>}
    </div>
  );
}

function useRows(read: () => Promise<Row[]>, key: string): Row[] | string | null {
  const [found, setFound] = useState<{ key: string; rows: Row[] | string } | null>(null);
  useEffect(() => {
    let wanted = true;
    read().then((rows) => wanted && setFound({ key, rows }), (error: Error) => wanted && setFound({ key, rows: error.message }));
    return () => { wanted = false; };
  }, [key]);
  return found?.key === key ? found.rows : null;
}

function useMap(name: string | undefined): Outlines | null {
  const [found, setFound] = useState<Outlines | null>(null);
  useEffect(() => {
    let wanted = true;
    setFound(null);
    if (name) loadMap(name).then((told) => wanted && setFound(told), () => undefined);
    return () => { wanted = false; };
  }, [name]);
  return found;
}

/** What is found as somebody types: tables, areas and groups. */
function Search({ shared }: { shared: Shared }) {
  const { release, areas, words, go } = shared;
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const names = useMemo(() => areas.code.map((_, place) => fold(`${areaName(release, areas, place)} ${areas.code[place]}`)), [areas]);
  const found = useMemo(() => {
    const wanted = fold(text).split(/\s+/).filter(Boolean);
    if (!wanted.length) return [];
    const fits = (folded: string) => wanted.every((one) => folded.includes(one));
    const hits: { kind: string; label: string; detail: string; to: Partial<View> }[] = [];
    for (const table of release.tables) {
      if (fits(fold(`${table.name} ${table.title}`))) hits.push({ kind: words.tables, label: table.title, detail: table.name, to: { table: table.id, view: "table", cell: 0 } });
      if (hits.length >= 8) break;
    }
    let areasFound = 0;
    for (let place = 0; place < names.length && areasFound < 12; place++) {
      if (!fits(names[place])) continue;
      areasFound++;
      hits.push({ kind: words.areas, label: areaName(release, areas, place), detail: `${release.kinds[areas.kind[place]].title} ${areas.code[place]}`, to: { area: areaKey(release, areas, place), view: "table" } });
    }
    const groups = new Map<string, string>();
    for (const table of release.tables) table.groups?.codes.forEach((code, place) => groups.set(code, table.groups!.labels[place] || code));
    let groupsFound = 0;
    for (const [code, label] of groups) {
      if (groupsFound >= 8 || !fits(fold(`${code} ${label}`))) continue;
      groupsFound++;
      hits.push({ kind: words.groups, label, detail: code, to: { group: code } });
    }
    return hits;
  }, [text, names, words]);
  const take = (to: Partial<View>) => { go(to); setText(""); };
  return (
    <div class="search" role="search">
      <input
        type="search" role="combobox" aria-expanded={found.length > 0} aria-controls="hits" aria-label={words.search} placeholder={words.search}
        aria-activedescendant={found.length ? `hit-${at}` : undefined} value={text} autocomplete="off"
        onInput={(event) => { setText(event.currentTarget.value); setAt(0); }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") { setAt(Math.min(at + 1, found.length - 1)); event.preventDefault(); }
          if (event.key === "ArrowUp") { setAt(Math.max(at - 1, 0)); event.preventDefault(); }
          if (event.key === "Enter" && found[at]) take(found[at].to);
          if (event.key === "Escape") setText("");
        }}
      />
      {text && (
        <ul id="hits" role="listbox" aria-label={words.search}>
          {found.map((hit, place) => (
            <li id={`hit-${place}`} role="option" aria-selected={place === at} onMouseDown={() => take(hit.to)}>
              <span dir="auto">{hit.label}</span> <small>{hit.kind} · {hit.detail}</small>
            </li>
          ))}
          {!found.length && <li role="option" aria-selected="false">{words.none}</li>}
        </ul>
      )}
    </div>
  );
}

function fold(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

const OPERATIONS: Operation[] = ["sum", "difference", "ratio", "share"];

function Tray({ shared }: { shared: Shared }) {
  const { release, areas, words, language, view, go } = shared;
  const [operation, setOperation] = useState<Operation>("sum");
  const [found, setFound] = useState<Found | string>("");
  const chosen = view.chosen.map((key) => chosenOf(shared, key)).filter((one) => one !== null);
  const key = `${view.chosen.join("&")}/${operation}`;
  useEffect(() => {
    let wanted = true;
    intervalOf(release, chosen, operation).then((told) => wanted && setFound(told), (error: Error) => wanted && setFound(error.message));
    return () => { wanted = false; };
  }, [key]);
  if (!chosen.length) return null;
  return (
    <section class="tray" aria-label={words.chosen}>
      <h2>{words.chosen}</h2>
      <ul>
        {chosen.map((one, at) => {
          const table = release.tables.find((t) => t.id === one.table)!;
          const told = [...labelOf(table, one.cell), groupLabel(table, one.group), areaName(release, areas, one.area)].filter(Boolean).join(", ");
          return (
            <li>
              <span dir="auto">{told}</span>
              <button type="button" class="plain" aria-label={`${words.clear}: ${told}`} onClick={() => go({ chosen: view.chosen.filter((_, place) => place !== at) })}>×</button>
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
          {typeof found === "string" ? found : (
            <>
              <strong>{answer(found.estimate, found, operation, language)}</strong>{" "}
              {Number.isNaN(found.low) ? found.words : `${answer(found.low, found, operation, language)} – ${answer(found.high, found, operation, language)}`}
            </>
          )}
        </p>
        <button type="button" class="plain" onClick={() => go({ chosen: [] })}>{words.clear}</button>
      </div>
    </section>
  );
}

/** Of whole estimates the ends are whole, too. */
function answer(value: number, found: Found, operation: Operation, language: Language): string {
  if (operation === "share") return `${value.toLocaleString(language, { maximumFractionDigits: 2 })} %`;
  return value.toLocaleString(language, { maximumFractionDigits: operation === "ratio" ? 4 : Number.isInteger(found.estimate) ? 0 : 2 });
}

function About({ shared }: { shared: Shared }) {
  const { release, words, language } = shared;
  return (
    <div class="about">
      <h2>{words.loss}</h2>
      {release.losses.map((one) => (
        <p>{one.part && <strong>{one.part}: </strong>}{one.symbol} = {one.loss.toLocaleString(language, { maximumFractionDigits: 4 })}; ε = {one.epsilon.toLocaleString(language, { maximumFractionDigits: 2 })} (δ = 10⁻¹⁰)</p>
      ))}
      {release.confidence !== null && <p>{words.confidence.replace("{0}", release.confidence.toLocaleString(language, { style: "percent" }))}</p>}
      <h2>{words.made}</h2>
      <p>Yupana {release.software}, {release.created}. {release.status.words}</p>
      <ul>{release.status.reasons.map((reason) => <li>{reason}</li>)}</ul>
      <h2>{words.cite}</h2>
      <p>{release.title}. {release.created}. manifest.json, SHA-256 <code>{release.sha256}</code></p>
    </div>
  );
}

function Atlas({ release, areas }: { release: Release; areas: Areas }) {
  const [view, setView] = useState<View>(() => readView(location.hash));
  const [language, setLanguage] = useState<Language>(navigator.language.startsWith("es") ? "es" : "en");
  const words = languages[language];
  useEffect(() => {
    const follow = () => setView(readView(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => { document.documentElement.lang = language; document.title = release.title; }, [language]);
  const go = (to: Partial<View>) => {
    const next = { ...view, ...to };
    setView(next);
    history.pushState(null, "", writeView(next));
  };
  const shared: Shared = { release, areas, words, language, view, go };
  const table = release.tables.find((one) => one.id === view.table) ?? release.tables[0];
  if (!table) return <p class="note">{words.noRows}</p>;
  let area = areaOf(release, areas, view.area);
  if (table.areas.length ? !table.areas.includes(area) : area < 0) area = sameArea(release, areas, table, area);
  const group = Math.max(table.groups ? table.groups.codes.indexOf(view.group) : 0, 0);
  const cell = view.cell < table.cells.length ? view.cell : 0;
  const kinds = [...new Set((table.areas.length ? table.areas : [area]).map((one) => areas.kind[one]))];
  return (
    <>
      <header>
        <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>{words.read}</a>
        <p class="title" dir="auto">{release.title}</p>
        <span class={`status ${release.status.kind}`}>{release.status.kind === "danger" ? release.status.words : words.public}</span>
        <Search shared={shared} />
        <button type="button" class="plain" onClick={() => setLanguage(language === "en" ? "es" : "en")}>{words.language}</button>
        <button type="button" class="plain" aria-pressed={view.view === "about"} onClick={() => go({ view: view.view === "about" ? "table" : "about" })}>{words.about}</button>
      </header>
      <div class="page">
        <nav aria-label={words.tables}>
          <label class="narrow">{words.tables}
            <select value={table.id} onChange={(e) => go({ table: e.currentTarget.value, view: "table", cell: 0 })}>
              {release.tables.map((one) => <option value={one.id}>{one.title}</option>)}
            </select>
          </label>
          <ul class="wide">
            {release.tables.map((one) => (
              <li><a href={writeView({ ...view, table: one.id, view: "table", cell: 0 })} aria-current={one === table ? "page" : undefined} dir="auto">{one.title}<small>{one.part} {one.name}</small></a></li>
            ))}
          </ul>
        </nav>
        <main id="main" tabIndex={-1}>
          {view.view === "about" ? <About shared={shared} /> : (
            <>
              <h1 dir="auto">{table.title} <small>{table.name}</small></h1>
              <div class="controls">
                {view.view === "table" && <Picker label={words.area} value={area} of={(table.areas.length ? table.areas : [area])} name={(one) => areaName(release, areas, one)} onPick={(one) => go({ area: areaKey(release, areas, one) })} />}
                {view.view === "areas" && <Picker label={words.area} value={areas.kind[area]} of={kinds} name={(one) => release.kinds[one].title} onPick={(one) => go({ area: areaKey(release, areas, table.areas.find((a) => areas.kind[a] === one) ?? area) })} />}
                {table.groups && <Picker label={words.group} value={group} of={table.groups.codes.map((_, at) => at)} name={(one) => groupLabel(table, one)} onPick={(one) => go({ group: table.groups!.codes[one] })} />}
                {view.view === "areas" && table.cells.length > 1 && <Picker label={words.cell} value={cell} of={table.cells.map((_, at) => at)} name={(one) => labelOf(table, one).join(", ")} onPick={(one) => go({ cell: one })} />}
                <button type="button" onClick={() => go({ view: view.view === "areas" ? "table" : "areas" })}>{view.view === "areas" ? words.read : words.compare}</button>
              </div>
              {view.view === "areas"
                ? <Compared shared={shared} table={table} group={group} cell={cell} kind={areas.kind[area]} />
                : <Reading shared={shared} table={table} area={area} group={group} />}
              {release.confidence !== null && <p class="note">{words.confidence.replace("{0}", release.confidence.toLocaleString(language, { style: "percent" }))}</p>}
            </>
          )}
        </main>
      </div>
      <Tray shared={shared} />
    </>
  );
}

/** The area of another table that was looked at, or the first of this one: tables call kinds of areas differently. */
function sameArea(release: Release, areas: Areas, table: Table, area: number): number {
  if (area >= 0) {
    const code = areas.code[area];
    const same = table.areas.find((one) => areas.code[one] === code);
    if (same !== undefined) return same;
  }
  return table.pieces.length ? table.pieces[0].first : 0;
}

function Picker({ label, value, of, name, onPick }: { label: string; value: number; of: number[]; name(one: number): string; onPick(one: number): void }) {
  const shown = of.length > 1000 ? of.slice(0, 1000) : of;
  return (
    <label>{label}
      <select value={value} onChange={(event) => onPick(Number(event.currentTarget.value))}>
        {!shown.includes(value) && <option value={value}>{name(value)}</option>}
        {shown.map((one) => <option value={one}>{name(one)}</option>)}
      </select>
    </label>
  );
}

const root = document.getElementById("atlas")!;
loadRelease().then(
  ([release, areas]) => render(<Atlas release={release} areas={areas} />, root),
  (error: Error) => { root.textContent = error.message; },
);
