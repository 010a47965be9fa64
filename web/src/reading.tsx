/** A table as it is read: its rows for one area and group, beside other areas or another release, or two variables crossed. */
import { useState } from "preact/hooks";
import { type Row, type Table, otherOf, rowsOfArea } from "./data";
import { type Reason } from "./forms";
import { Axis, Bar } from "./draw";
import { type Chosen, intervalOf } from "./interval";
import { type Scale, scaleOf } from "./numbers";
import { Save, type Seen } from "./save";
import { Label, type Shared, areaName, columnTitle, dangerOf, faultWords, groupLabel, intervalWords, labelOf, lineOf, reasonWords, short, sourceOf, titleOf, useFound, valueWords } from "./shared";
import { areaOf, rowKey } from "./state";
import { fill } from "./words";

type Shown = Pick<Row, "value" | "low" | "high"> & { reason?: Reason };
/** A column of numbers: what it is called, and its number for each cell of the table. */
interface Series { title: string; kind: string; rows: Map<number, Shown>; isNoisy: boolean }

const SHOWN = 400;

export interface Place { shared: Shared; table: Table; area: number; group: number }

export function Reading({ shared, table, area, group }: Place) {
  const { words, view, release, areas } = shared;
  const beside = view.beside.map((key) => areaOf(release, areas, key)).filter((one) => one >= 0 && one !== area);
  const isCompared = view.other && release.releases.length > 1;
  const key = [table.id, area, group, isCompared, ...beside].join("/");
  const found = useFound(() => seriesOf(shared, table, area, group, isCompared ? [] : beside, isCompared), key);
  if (found instanceof Error) return <p class="note" role="alert">{faultWords(words, found)}</p>;
  if (!found) return <p class="note" aria-busy="true">{words.loading}</p>;
  const cells = [...new Set(found.flatMap((one) => [...one.rows.keys()]))].sort((a, b) => inOrder(table, a, b));
  if (!cells.length) return <NoRows shared={shared} table={table} area={area} />;
  const across = found.length === 1 ? acrossOf(table, view.across) : -1;
  const place = { shared, table, area, group };
  const reason = found.flatMap((one) => [...one.rows.values()]).find((row) => row.reason)?.reason;
  return (
    <>
      {across >= 0 ? <Crossed place={place} series={found[0]} cells={cells} across={across} /> : <Listed place={place} series={found} cells={cells} />}
      {reason && <p class="note">{reasonWords(words, reason)}</p>}
      <Save seen={seenOf(place, found, cells)} words={words} locale={shared.locale} />
    </>
  );
}

/** Which groups an area has, where it has not the one that was asked for. */
function NoRows({ shared, table, area }: Omit<Place, "group">) {
  const { words, go } = shared;
  const found = useFound(async () => [...new Set((await rowsOfArea(table, area)).map((row) => row.group))].sort((a, b) => a - b), `${table.id}/${area}`);
  const groups = found instanceof Error || !table.groups ? [] : (found ?? []);
  return (
    <>
      <p class="note">{words.noRows} {groups.length > 0 && words.groupsHere}</p>
      <ul class="of-groups">{groups.map((one) => <li><button type="button" class="plain" onClick={() => go({ group: table.groups!.codes[one] })}><Label text={groupLabel(table, one)} /></button></li>)}</ul>
    </>
  );
}

async function seriesOf(shared: Shared, table: Table, area: number, group: number, beside: number[], isCompared: boolean): Promise<Series[]> {
  const { release, words } = shared;
  const rowsIn = async (of: Table, at: number, own: number) => (await rowsOfArea(of, at)).filter((row) => row.group === own);
  const own = await rowsIn(table, area, group);
  const first: Series = { title: beside.length ? areaName(shared, area) : words.estimate, kind: "", isNoisy: table.noisy, rows: new Map(own.map((row) => [row.cell, row])) };
  if (!isCompared) {
    const others = await Promise.all(beside.map(async (one, at) => ({
      title: areaName(shared, one), kind: `series-${at + 1}`, isNoisy: table.noisy,
      rows: new Map((await rowsIn(table, one, group)).map((row) => [row.cell, row])),
    })));
    return [first, ...others];
  }
  const [here, there] = release.releases;
  const other = otherOf(release, table);
  const otherGroup = other ? other.group(group) : -1;
  const rows = other && otherGroup >= 0 ? new Map((await rowsIn(other.table, area, otherGroup)).map((row) => [row.cell, row])) : new Map<number, Row>();
  const mine = new Map<number, Shown>(), difference = new Map<number, Shown>();
  for (const row of own) {
    const cell = other ? other.cell(row.cell) : -1;
    const found = rows.get(cell);
    if (found) mine.set(row.cell, found);
    if (!found || !other) { difference.set(row.cell, { value: NaN, low: NaN, high: NaN, reason: "missing" }); continue; }
    const told = await intervalOf(release, [{ table: other.table, area, group: otherGroup, cell }, { table, area, group, cell: row.cell }], "difference");
    difference.set(row.cell, typeof told === "string" ? { value: NaN, low: NaN, high: NaN, reason: told } : { value: told.estimate, low: told.low, high: told.high, reason: told.reason });
  }
  return [
    { ...first, title: here.folder },
    { title: there.folder, kind: "series-1", rows: mine, isNoisy: table.noisy },
    { title: fill(words.less, there.folder, here.folder), kind: "change", rows: difference, isNoisy: table.noisy },
  ];
}

/** Cells stand in the order of the codes of their variables. */
function inOrder(table: Table, a: number, b: number): number {
  const [one, other] = [table.cells[a], table.cells[b]];
  const at = one.findIndex((code, place) => code !== other[place]);
  return at < 0 ? a - b : one[at] - other[at];
}

/** Which variable stands in the columns: the one that is asked for, or the last short one; -1 where rows are one list. */
export function acrossOf(table: Table, asked: string): number {
  if (table.columns.length < 2 || table.depths.length || asked === "-") return -1;
  const named = table.columns.findIndex((column) => column.name === asked);
  if (named >= 0) return named;
  const short_ = (at: number) => table.columns[at].codes.length > 1 && table.columns[at].codes.length <= 6;
  for (let at = table.columns.length - 1; at >= 0; at--) if (short_(at)) return at;
  return -1;
}

function choosing(shared: Shared) {
  const isChosen = new Set(shared.view.chosen);
  return {
    isChosen,
    choose: (key: string) => shared.go({ chosen: isChosen.has(key) ? shared.view.chosen.filter((one) => one !== key) : [...shared.view.chosen, key] }),
  };
}

function Listed({ place, series, cells }: { place: Place; series: Series[]; cells: number[] }) {
  const { shared, table, area, group } = place;
  const { words, locale } = shared;
  const [most, setMost] = useState(SHOWN);
  const values = series.filter((one) => one.kind !== "change");
  const change = series.find((one) => one.kind === "change");
  const scale = scaleOf(values.flatMap((one) => [...one.rows.values()]));
  const ofChange = change && scaleOf(change.rows.values());
  const { isChosen, choose } = choosing(shared);
  const isLone = series.length === 1;
  const margin = table.noisy ? words.margin : words.interval;
  return (
    <>
      <div class="scroll">
        <table class={`reading${series.length > 1 ? " several" : ""}${table.depths.length ? " indented" : ""}`}>
          <thead>
            <tr>
              <th class="pick"><span class="unseen">{words.chosen}</span></th>
              {table.columns.length ? table.columns.map((_, at) => <th scope="col"><Label text={columnTitle(shared, table, at)} /></th>) : <th scope="col">{words.cell}</th>}
              {isLone ? <><th scope="col" class="figure">{words.estimate}</th><th scope="col" class="figure">{margin}</th></>
                : series.map((one) => <th scope="col" class="figure"><span class={`key ${one.kind}`} /><Label text={one.title} /></th>)}
              <th scope="col" class="drawn"><span class="unseen">{words.interval}</span><Axis scale={scale} locale={locale} few={!isLone} /></th>
              {ofChange && <th scope="col" class="drawn"><span class="unseen">{words.difference}</span><Axis scale={ofChange} locale={locale} few /></th>}
            </tr>
          </thead>
          <tbody>
            {cells.slice(0, most).map((cell) => {
              const labels = table.columns.length ? labelOf(table, cell) : [titleOf(shared, table)];
              const key = rowKey(shared.release, shared.areas, { table, area, group, cell });
              const depth = table.depths[cell] ?? 0;
              return (
                <tr class={isChosen.has(key) ? "chosen" : ""}>
                  <td class="pick"><input type="checkbox" checked={isChosen.has(key)} onChange={() => choose(key)} aria-label={fill(words.choose, short(labels.join(", ")))} /></td>
                  {(table.columns.length ? lineOf(table, cell) : labels).map((label, at) => at === 0 ? <th scope="row" class={`depth-${Math.min(depth, 4)}`}><Label text={label} /></th> : <td><Label text={label} /></td>)}
                  {series.map((one) => isLone ? <>
                    <td class="figure">{valueWords(one.rows.get(cell), shared)}</td>
                    <td class="figure quiet">{intervalWords(one.rows.get(cell), one.isNoisy, locale)}</td>
                  </> : <td class="figure"><span class={`key ${one.kind}`} />{valueWords(one.rows.get(cell), shared)} <span class="quiet">{intervalWords(one.rows.get(cell), one.isNoisy, locale)}</span></td>)}
                  <td class="drawn">{values.map((one) => <Drawn row={one.rows.get(cell)} scale={scale} kind={one.kind} />)}</td>
                  {ofChange && <td class="drawn"><Drawn row={change.rows.get(cell)} scale={ofChange} kind="change" /></td>}
                </tr>
              );
            })}
          </tbody>
          {series.length === 1 && table.adds && cells.length > 1 && <Total place={place} cells={cells} scale={null} />}
        </table>
      </div>
      {most < cells.length && <p class="note">{fill(words.rowsShown, most.toLocaleString(locale), cells.length.toLocaleString(locale))} · <button type="button" class="plain" onClick={() => setMost(most + SHOWN)}>{words.more}</button></p>}
    </>
  );
}

function Drawn({ row, scale, kind }: { row: Shown | undefined; scale: Scale; kind: string }) {
  return row ? <Bar row={row} scale={scale} kind={kind} /> : null;
}

const SUMMED = 3000;

/** The sum of rows that exclude each other, with its interval where it can be had. */
function Total({ place, cells }: { place: Place; cells: number[]; scale: Scale | null }) {
  const { shared, table, area, group } = place;
  const found = useFound(() => sum(place, cells), `${table.id}/${area}/${group}/${cells.length}`);
  if (!found || found instanceof Error || typeof found === "string") return null;
  return (
    <tfoot>
      <tr>
        <td class="pick" /><th scope="row" colSpan={Math.max(table.columns.length, 1)}>{shared.words.total}</th>
        <td class="figure">{valueWords({ value: found.estimate }, shared)}</td>
        <td class="figure quiet">{intervalWords({ value: found.estimate, ...found }, table.noisy, shared.locale)}</td>
        <td class="drawn quiet">{found.reason ? reasonWords(shared.words, found.reason) : ""}</td>
      </tr>
    </tfoot>
  );
}

async function sum({ shared, table, area, group }: Place, cells: number[]) {
  if (cells.length > SUMMED) return "choose" as const;
  const chosen: Chosen[] = cells.map((cell) => ({ table, area, group, cell }));
  return intervalOf(shared.release, chosen, "sum");
}

/** One variable in the columns, the others in the rows. */
function Crossed({ place, series, cells, across }: { place: Place; series: Series; cells: number[]; across: number }) {
  const { shared, table, area, group } = place;
  const { words, locale } = shared;
  const [most, setMost] = useState(100);
  const others = table.columns.map((_, at) => at).filter((at) => at !== across);
  const lines = new Map<string, Map<number, number>>();
  for (const cell of cells) {
    const key = others.map((at) => table.cells[cell][at]).join();
    if (!lines.has(key)) lines.set(key, new Map());
    lines.get(key)!.set(table.cells[cell][across], cell);
  }
  const codes = table.columns[across].codes.map((_, at) => at).filter((at) => cells.some((cell) => table.cells[cell][across] === at));
  const scale = scaleOf(series.rows.values());
  const { isChosen, choose } = choosing(shared);
  const label = (at: number, code: number) => table.columns[at].labels[code] || table.columns[at].codes[code];
  let before: number[] = [];
  const shown = [...lines.entries()].slice(0, most);
  return (
    <>
      <div class="scroll">
        <table class="reading crossed">
          <thead>
            <tr>
              {others.map((at) => <th scope="col" rowSpan={2}><Label text={columnTitle(shared, table, at)} /></th>)}
              <th scope="colgroup" colSpan={codes.length}><Label text={columnTitle(shared, table, across)} /></th>
            </tr>
            <tr>{codes.map((code) => <th scope="col"><Label text={label(across, code)} /><Axis scale={scale} locale={locale} few /></th>)}</tr>
          </thead>
          <tbody>
            {shown.map(([key, line]) => {
              const own = key.split(",").map(Number);
              const same = own.findIndex((code, at) => code !== before[at]);
              before = own;
              return (
                <tr>
                  {others.map((at, place_) => place_ < others.length - 1
                    ? <td class={place_ < same ? "again" : ""}>{place_ < same ? <span class="unseen">{label(at, own[place_])}</span> : <Label text={label(at, own[place_])} />}</td>
                    : <th scope="row"><Label text={label(at, own[place_])} /></th>)}
                  {codes.map((code) => {
                    const cell = line.get(code);
                    const row = cell === undefined ? undefined : series.rows.get(cell);
                    if (cell === undefined || !row) return <td />;
                    const chosenKey = rowKey(shared.release, shared.areas, { table, area, group, cell });
                    return (
                      <td class={isChosen.has(chosenKey) ? "chosen" : ""}>
                        <label class="cell">
                          <input type="checkbox" checked={isChosen.has(chosenKey)} onChange={() => choose(chosenKey)} aria-label={fill(words.choose, short(labelOf(table, cell).join(", ")))} />
                          <span>{valueWords(row, shared)} <span class="quiet">{intervalWords(row, series.isNoisy, locale)}</span></span>
                        </label>
                        <Bar row={row} scale={scale} />
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
          {table.adds && <Totals place={place} codes={codes} across={across} cells={cells} skip={others.length} />}
        </table>
      </div>
      {most < lines.size && <p class="note">{fill(words.rowsShown, most.toLocaleString(locale), lines.size.toLocaleString(locale))} · <button type="button" class="plain" onClick={() => setMost(most + 200)}>{words.more}</button></p>}
    </>
  );
}

/** Sums of the columns of a crossed table. */
function Totals({ place, codes, across, cells, skip }: { place: Place; codes: number[]; across: number; cells: number[]; skip: number }) {
  const { shared, table, area, group } = place;
  const key = `${table.id}/${area}/${group}/${across}/${cells.length}`;
  const found = useFound(() => Promise.all(codes.map((code) => sum(place, cells.filter((cell) => table.cells[cell][across] === code)))), key);
  if (!found || found instanceof Error) return null;
  return (
    <tfoot>
      <tr>
        <th scope="row" colSpan={skip}>{shared.words.total}</th>
        {found.map((one) => <td class="sum">{typeof one === "string" ? "" : <>{valueWords({ value: one.estimate }, shared)} <span class="quiet">{intervalWords({ value: one.estimate, ...one }, table.noisy, shared.locale)}</span></>}</td>)}
      </tr>
    </tfoot>
  );
}

function seenOf({ shared, table, area, group }: Place, series: Series[], cells: number[]): Seen {
  const { words, locale } = shared;
  const numbers = series.flatMap((one) => (series.length > 1 ? [one.title, `${one.title}: low`, `${one.title}: high`] : [words.estimate, "low", "high"]));
  const isSingle = series.length === 1;
  const where = [areaName(shared, area), short(groupLabel(table, group))].filter(Boolean).join(", ");
  return {
    name: `${table.name}-${shared.areas.code[area]}`.replace(/[^\p{L}\p{N}._-]+/gu, "-"), title: `${titleOf(shared, table)}: ${where}`, source: sourceOf(shared), danger: dangerOf(shared),
    columns: [words.area, ...(table.groups ? [words.group] : []), ...table.columns.map((_, at) => columnTitle(shared, table, at)), ...numbers],
    rows: cells.map((cell) => [
      shared.areas.code[area], ...(table.groups ? [table.groups.codes[group]] : []), ...labelOf(table, cell),
      ...series.flatMap((one) => { const row = one.rows.get(cell); return row ? [row.value, row.low, row.high] : [NaN, NaN, NaN]; }),
    ]),
    lines: cells.flatMap((cell) => series.filter((one) => one.rows.has(cell)).map((one) => {
      const row = one.rows.get(cell)!;
      const label = labelOf(table, cell).join(", ") || titleOf(shared, table);
      return { label: isSingle ? label : `${label}; ${one.title}`, text: `${valueWords(row, shared)} ${intervalWords(row, one.isNoisy, locale)}`, row };
    })),
  };
}
