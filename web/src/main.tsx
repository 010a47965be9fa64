/** The atlas: pages on which anybody reads a release, error first. */
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { About } from "./about";
import { Compared } from "./compared";
import { type Areas, type Release, type Table, areasOf, hasArea, loadRelease, rowsOfArea } from "./data";
import { AreaPicker, Picker, Search, kindsOf } from "./find";
import { localeOf } from "./numbers";
import { Reading, acrossOf } from "./reading";
import { type Shared, Label, areaName, cellName, columnTitle, dangerOf, faultWords, groupLabel, kindName, short, titleOf, useFound } from "./shared";
import { type View, areaKey, areaOf, cellKey, cellOf, chosenOf, readView, tableKey, tableOf, writeView } from "./state";
import { Tray } from "./tray";
import { type Language, fill, languages } from "./words";

function Atlas({ release, areas }: { release: Release; areas: Areas }) {
  const [view, setView] = useState<View>(() => readView(location.hash));
  const own = navigator.language.startsWith("es") ? "es" : "en";
  const language: Language = view.language === "en" || view.language === "es" ? view.language : own;
  const words = languages[language];
  useEffect(() => {
    const follow = () => setView(readView(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => { document.documentElement.lang = language; }, [language]);
  const go = useMemo(() => (to: Partial<View>) => setView((before) => {
    const next = { ...before, ...to };
    // A page within a page has no address of its own.
    try { history.pushState(null, "", writeView(next)); } catch { /* the view changes all the same */ }
    return next;
  }), []);
  const shared: Shared = { release, areas, words, locale: localeOf(language, navigator.language), view, go };
  const tables = useMemo(() => {
    const of = release.tables.filter((one) => !one.side);
    return [...of.filter((one) => one.name !== "tabulation"), ...of.filter((one) => one.name === "tabulation")];
  }, [release]);
  const asked = tableOf(release, view.table);
  const table = asked && !asked.side ? asked : tables[0];
  const isAbout = view.view === "about" || !table;
  const chosen = view.chosen.map((key) => ({ key, one: chosenOf(release, areas, key) })).filter((one) => one.one !== null) as Parameters<typeof Tray>[0]["chosen"];
  const wanted = areaOf(release, areas, view.area);
  const area = !table ? -1 : hasArea(table, wanted) ? wanted : sameArea(shared, table, wanted);
  const asking = table?.groups ? table.groups.codes.indexOf(view.group) : 0;
  // Without a group that is asked for, the first that the area has.
  const first = useFound(async () => (asking < 0 && area >= 0 ? (await rowsOfArea(table, area)) : []), `${table?.id}/${area}/${asking}`);
  // Until that is known the last one stays: a page that is taken away loses the focus.
  const lastGroup = useRef(-1);
  if (asking >= 0) lastGroup.current = asking;
  else if (first) lastGroup.current = first instanceof Error || !first.length ? 0 : Math.min(...first.map((row) => row.group));
  const group = table?.groups ? Math.min(lastGroup.current, table.groups.codes.length - 1) : 0;
  const faults = [
    view.table && !asked ? view.table : "", view.area && wanted < 0 ? view.area : "",
    view.group && !tables.some((one) => one.groups?.codes.includes(view.group)) ? view.group : "",
    chosen.length < view.chosen.length ? fill(words.rowsOfLink, view.chosen.length - chosen.length) : "",
  ].filter(Boolean).map(short);
  const title = isAbout ? words.about : titleOf(shared, table);
  const [here, other] = release.releases;
  useEffect(() => { document.title = `${short(title)} – ${short(here.title)}`; }, [title, here]);
  const danger = dangerOf(shared);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{words.skip}</a>
      {danger && <aside class="banner" aria-label={danger}>{danger}: {words.dangerWords} {here.status.reasons.map((one) => short(one.charAt(0).toLocaleUpperCase() + one.slice(1))).join("; ")}</aside>}
      <header>
        <p class="title" title={short(here.title)}><bdi>{short(here.title)}</bdi> <small>{here.folder}{other ? ` · ${other.folder}` : ""}</small></p>
        {!danger && <span class="status public">{words.public}</span>}
        <Search shared={shared} />
        <div class="links">
          {release.index && <a href={release.index}>{words.releases}</a>}
          <CopyLink words={words} key={writeView(view)} />
          <button type="button" class="plain" aria-pressed={isAbout} onClick={() => go({ view: view.view === "about" ? "table" : "about" })}>{words.about}</button>
          <button type="button" class="plain" lang={language === "en" ? "es" : "en"} onClick={() => go({ language: language === "en" ? "es" : "en" })}>{words.language}</button>
        </div>
      </header>
      <div class="page">
        <nav aria-label={words.tables}>
          <label class="narrow">{words.table}
            <select value={table?.id} onChange={(event) => go({ table: tableKey(release.tables.find((one) => one.id === event.currentTarget.value)!), view: "table", cell: "", share: "", across: "" })}>
              {tables.map((one) => <option value={one.id}>{[one.part, short(titleOf(shared, one))].filter(Boolean).join(": ")}</option>)}
            </select>
          </label>
          <ul class="wide">
            {tables.map((one) => (
              <li><a href={writeView({ ...view, table: tableKey(one), view: "table", cell: "", share: "", across: "" })} aria-current={one === table && view.view !== "about" ? "page" : undefined}><Label text={titleOf(shared, one)} /><small>{tableKey(one)}</small></a></li>
            ))}
          </ul>
        </nav>
        <main id="main" tabIndex={-1}>
          {faults.length > 0 && <p class="doubt" role="status">{fill(words.linkFaults, faults.join("; "))}</p>}
          {release.partial && <p class="doubt">{fill(words.partial, release.partial.left.map((kind) => words.kinds[kind.toLowerCase()] ?? kind).join(", "), release.partial.command)}</p>}
          {isAbout ? <About shared={shared} /> : group < 0 ? <p class="note" aria-busy="true">{words.loading}</p> : <OneTable shared={shared} table={table} area={area} group={group} />}
        </main>
      </div>
      <Tray shared={shared} chosen={chosen} />
    </>
  );
}

function CopyLink({ words }: { words: Shared["words"] }) {
  const [isCopied, setCopied] = useState(false);
  return <button type="button" class="plain" onClick={() => void navigator.clipboard?.writeText(location.href).then(() => setCopied(true), () => undefined)}>{isCopied ? words.copied : words.link}</button>;
}

function OneTable({ shared, table, area, group }: { shared: Shared; table: Table; area: number; group: number }) {
  const { words, view, go, release, areas } = shared;
  const [here, other] = release.releases;
  const isAreas = view.view === "areas";
  const cell = Math.max(cellOf(table, view.cell), 0);
  const share = view.share ? cellOf(table, view.share) : -1;
  const kinds = kindsOf(shared, table);
  const key = (one: number) => areaKey(release, areas, one);
  const { confidence } = here;
  const beside = view.beside.map((one) => areaOf(release, areas, one)).filter((one) => hasArea(table, one) && one !== area);
  return (
    <>
      <h1><Label text={titleOf(shared, table)} /> <small>{tableKey(table)}</small></h1>
      {table.universe && <p class="universe">{fill(words.universe, short(table.universe))}</p>}
      <div class="controls">
        {!isAreas && <AreaPicker shared={shared} table={table} id="area" label={words.area} area={area} onPick={(one) => go({ area: key(one) })} />}
        {!isAreas && !view.other && areasOf(table).length > 1 && beside.length < 3 && <AreaPicker shared={shared} table={table} id="beside" label={words.beside} area={-1} onPick={(one) => go({ beside: [...view.beside, key(one)] })} />}
        {isAreas && <Picker label={words.kind} value={areas.kind[area]} of={kinds} name={(one) => kindName(shared, one)} onPick={(one) => go({ area: key(areasOf(table).find((a) => areas.kind[a] === one) ?? area) })} />}
        {table.groups && <Picker label={words.group} value={group} of={table.groups.codes.map((_, at) => at)} name={(one) => short(groupLabel(table, one))} onPick={(one) => go({ group: table.groups!.codes[one] })} />}
        {isAreas && table.cells.length > 1 && <Picker label={words.cell} value={cell} of={table.cells.map((_, at) => at)} name={(one) => cellName(shared, table, one)} onPick={(one) => go({ cell: cellKey(table, one) })} />}
        {isAreas && !view.other && table.cells.length > 1 && <Picker label={words.show} value={share} of={[-1, ...table.cells.map((_, at) => at).filter((at) => at !== cell)]} name={(one) => (one < 0 ? words.counts : fill(words.shareOf, cellName(shared, table, one)))} onPick={(one) => go({ share: one < 0 ? "" : cellKey(table, one) })} />}
        {!isAreas && !view.other && !beside.length && table.columns.length > 1 && !table.depths.length && (
          <label>{words.across}
            <select value={table.columns[acrossOf(table, view.across)]?.name ?? "-"} onChange={(event) => go({ across: event.currentTarget.value })}>
              <option value="-">{words.list}</option>
              {table.columns.map((column, at) => <option value={column.name}>{short(columnTitle(shared, table, at))}</option>)}
            </select>
          </label>
        )}
        <button type="button" onClick={() => go({ view: isAreas ? "table" : "areas" })}>{isAreas ? words.read : words.compare}</button>
        {other && <button type="button" aria-pressed={view.other} onClick={() => go({ other: !view.other })}>{fill(view.other ? words.without : words.with, other.folder)}</button>}
      </div>
      {!isAreas && beside.length > 0 && !view.other && (
        <ul class="beside">{beside.map((one) => <li><bdi>{areaName(shared, one)}</bdi><button type="button" class="plain" aria-label={fill(words.remove, areaName(shared, one))} onClick={() => go({ beside: view.beside.filter((other_) => other_ !== key(one)) })}>×</button></li>)}</ul>
      )}
      {isAreas
        ? <Compared shared={shared} table={table} group={group} cell={cell} kind={areas.kind[area]} share={share} area={area} />
        : <Reading shared={shared} table={table} area={area} group={group} />}
      {confidence !== null && <p class="note">{fill(table.alone === "estimates" ? words.confidenceOfEstimates : words.confidence, confidence.toLocaleString(shared.locale, { style: "percent" }))}{table.alone === "topdown" && ` ${words.exactNote}`}</p>}
    </>
  );
}

/** The area of another table that was looked at, or the first of the largest kind: tables may call kinds differently. */
function sameArea(shared: Shared, table: Table, area: number): number {
  const { areas } = shared;
  const all = areasOf(table);
  if (area >= 0) {
    const same = all.find((one) => areas.code[one] === areas.code[area]);
    if (same !== undefined) return same;
  }
  const [largest] = kindsOf(shared, table);
  return all.find((one) => areas.kind[one] === largest) ?? -1;
}

const root = document.getElementById("atlas")!;
if (typeof DecompressionStream === "undefined") root.textContent = languages[navigator.language.startsWith("es") ? "es" : "en"].old;
else {
  loadRelease().then(
    ([release, areas]) => { root.textContent = ""; render(<Atlas release={release} areas={areas} />, root); },
    (error: Error) => { root.textContent = faultWords(languages[navigator.language.startsWith("es") ? "es" : "en"], error); },
  );
}
