/** One row of a table in all areas of a kind: counts, shares of another row, or differences from the other release. */
import { useMemo, useState } from "preact/hooks";
import { type Outlines, type Row, type Table, loadMap, otherOf, rowsOfCell } from "./data";
import type { Reason } from "./forms";
import { Axis, Bar } from "./draw";
import { fold, kindsOf } from "./find";
import { intervalOf } from "./interval";
import { MapOf } from "./map";
import { scaleOf, show } from "./numbers";
import { Save, type Seen } from "./save";
import { Label, type Shared, areaName, cellName, dangerOf, faultWords, intervalWords, reasonWords, short, sourceOf, titleOf, useFound, valueWords, wholeName } from "./shared";
import { areaKey } from "./state";
import { fill } from "./words";

export interface OfArea { area: number; value: number; low: number; high: number; reason?: Reason }
const SHOWN = 200;

interface Told { shared: Shared; table: Table; group: number; cell: number; kind: number; share: number; area: number }

export function Compared({ shared, table, group, cell, kind, share, area }: Told) {
  const { words, locale, release, areas, go, view } = shared;
  const [byName, setByName] = useState(false);
  const [most, setMost] = useState(SHOWN);
  const [wanted, setWanted] = useState("");
  const [over, setOver] = useState<number | null>(null);
  const [progress, setProgress] = useState(0);
  const isDifference = view.other && release.releases.length > 1;
  const key = [table.id, group, cell, kind, share, isDifference].join("/");
  const found = useFound(() => measured({ shared, table, group, cell, kind, share, area }, isDifference, setProgress), key);
  const map = useFound<Outlines | null>(async () => (release.maps[String(kind)] ? loadMap(release.maps[String(kind)], Object.values(release.maps)) : null), String(kind));
  const rows = useMemo(() => (found instanceof Error || !found ? [] : found.filter((row) => areas.kind[row.area] === kind)), [found, kind]);
  const scale = useMemo(() => scaleOf(rows), [found]);
  const sorted = useMemo(() => {
    const of = rows.map((row) => ({ row, name: wholeName(shared, row.area) }));
    if (byName) of.sort((a, b) => a.name.localeCompare(b.name, locale, { numeric: true }));
    else of.sort((a, b) => (Number.isNaN(a.row.value) ? 1 : Number.isNaN(b.row.value) ? -1 : b.row.value - a.row.value));
    return of;
  }, [found, byName, locale]);
  if (found instanceof Error) return <p class="note" role="alert">{faultWords(words, found)}</p>;
  if (!found) return <p class="note" aria-busy="true">{progress ? fill(words.loaded, progress.toLocaleString(locale, { style: "percent" })) : words.loading}</p>;
  const folded = fold(wanted).split(/\s+/).filter(Boolean);
  const of = folded.length ? sorted.filter(({ row, name }) => folded.every((one) => fold(`${name} ${areas.code[row.area]}`).includes(one))) : sorted;
  const isShare = share >= 0 && !isDifference;
  const what = cellName(shared, table, cell);
  const title = isDifference ? `${what}: ${fill(words.less, release.releases[1].folder, release.releases[0].folder)}`
    : isShare ? `${what}: ${fill(words.shareOf, cellName(shared, table, share))}` : what;
  const broken = isDifference ? { at: 0, name: "0" } : isShare ? breakOf(shared, table, rows, found) : null;
  const reason = rows.find((row) => row.reason)?.reason;
  const value = (row: OfArea) => (isShare && !Number.isNaN(row.value) ? `${show(row.value, locale, 2)}\u00a0%` : valueWords(row, shared));
  const interval = (row: OfArea) => intervalWords(row, table.noisy && !isShare, locale);
  const seen: Seen = {
    name: `${table.name}-${release.kinds[kind].name}`.replace(/[^\p{L}\p{N}._-]+/gu, "-"), title: `${titleOf(shared, table)}: ${title}`, source: sourceOf(shared), danger: dangerOf(shared),
    columns: [words.kind, words.area, words.search, title, "low", "high"].map((one, at) => (at === 2 ? "code" : one)),
    rows: of.map(({ row, name }) => [release.kinds[kind].name, name, areas.code[row.area], row.value, row.low, row.high]),
    lines: of.map(({ row, name }) => ({ label: short(name), text: `${value(row)} ${interval(row)}`, row })),
    map: () => document.querySelector<SVGSVGElement>(".map svg"),
  };
  const pick = (one: number) => go({ view: "table", area: areaKey(release, areas, one) });
  return (
    <>
      {map && !(map instanceof Error) && (
        <MapOf outlines={map} rows={rows} title={title} broken={broken} isShare={isShare} shared={shared} over={over} onOver={setOver} onPick={pick} />
      )}
      {reason && <p class="note">{reasonWords(words, reason)}</p>}
      <div class="controls list">
        <label>{words.filter}<input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <span class="note">{fill(words.of, Math.min(most, of.length).toLocaleString(locale), rows.length.toLocaleString(locale))}</span>
        <button type="button" class="plain" onClick={() => setByName(!byName)}>{byName ? words.sorted : words.byName}</button>
      </div>
      <table class="reading" onMouseLeave={() => setOver(null)}>
        <thead>
          <tr>
            <th scope="col">{words.area}</th><th scope="col" class="figure">{isDifference ? words.difference : isShare ? words.share : words.estimate}</th>
            <th scope="col" class="figure">{table.noisy && !isShare ? words.margin : words.interval}</th>
            <th scope="col" class="drawn"><span class="unseen">{words.interval}</span><Axis scale={scale} locale={locale} /></th>
          </tr>
        </thead>
        <tbody>
          {of.slice(0, most).map(({ row, name }) => (
            <tr class={over === row.area ? "over" : ""} onMouseEnter={() => map && setOver(row.area)}>
              <th scope="row"><button type="button" class="plain" onFocus={() => map && setOver(row.area)} onClick={() => pick(row.area)}><Label text={name} /></button></th>
              <td class="figure">{value(row)}</td>
              <td class="figure quiet">{interval(row)}</td>
              <td class="drawn"><Bar row={row} scale={scale} kind={isDifference ? "change" : ""} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {most < of.length && <p class="note">{fill(words.rowsShown, most.toLocaleString(locale), of.length.toLocaleString(locale))} · <button type="button" class="plain" onClick={() => setMost(most + SHOWN)}>{words.more}</button></p>}
      <Save seen={seen} words={words} locale={locale} />
    </>
  );
}

async function measured({ shared, table, group, cell, kind, share, area }: Told, isDifference: boolean, tell: (progress: number) => void): Promise<OfArea[]> {
  const { release, areas } = shared;
  const largest = kindsOf(shared, table)[0];
  // The area that others are compared with is asked, too.
  const isWanted = (one: number) => areas.kind[one] === kind || (share >= 0 && areas.kind[one] === largest);
  const rows: Row[] = await rowsOfCell(table, group, cell, isWanted, tell);
  if (!isDifference && share < 0) return rows;
  const other = isDifference ? otherOf(release, table) : null;
  const found: OfArea[] = [];
  for (const row of rows) {
    const own = { table, area: row.area, group, cell };
    if (isDifference) {
      const there = other && other.group(group) >= 0 && other.cell(cell) >= 0 ? { table: other.table, area: row.area, group: other.group(group), cell: other.cell(cell) } : null;
      const told = there ? await intervalOf(release, [there, own], "difference") : "missing";
      found.push(typeof told === "string" ? { area: row.area, value: NaN, low: NaN, high: NaN, reason: told } : { area: row.area, value: told.estimate, low: told.low, high: told.high, reason: told.reason });
    } else {
      const told = await intervalOf(release, [own, { ...own, cell: share }], "share");
      if (typeof told === "string") found.push({ area: row.area, value: NaN, low: NaN, high: NaN, reason: told === "suppressed" || told === "zero" ? undefined : told });
      // Where the set has no two ends any number may be true.
      else if (told.reason === "rays") found.push({ area: row.area, value: told.estimate, low: -Infinity, high: Infinity });
      else found.push({ area: row.area, value: told.estimate, low: told.low, high: told.high, reason: told.reason === "zero" ? undefined : told.reason });
    }
    if (found.length % 500 === 0) tell(found.length / rows.length);
  }
  return found;
}

/** What shares are compared with: that of the largest area, or the middle one. */
function breakOf(shared: Shared, table: Table, rows: OfArea[], all: OfArea[]): { at: number; name: string } | null {
  const [largest] = kindsOf(shared, table);
  const whole = all.filter((row) => shared.areas.kind[row.area] === largest);
  if (whole.length === 1 && !Number.isNaN(whole[0].value)) return { at: whole[0].value, name: `${areaName(shared, whole[0].area)}, ${show(whole[0].value, shared.locale, 2)}\u00a0%` };
  const known = rows.map((row) => row.value).filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  if (!known.length) return null;
  const middle = known[known.length >> 1];
  return { at: middle, name: `${show(middle, shared.locale, 2)}\u00a0%` };
}
