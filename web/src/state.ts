/** What is looked at, as the address holds it: a link shows the same to others. */
import type { Areas, Release, Table } from "./data";
import type { Chosen } from "./interval";

export interface View {
  table: string; area: string; group: string; view: "table" | "areas" | "about"; cell: string; share: string; across: string;
  beside: string[]; other: boolean; chosen: string[]; language: string;
}
export const START: View = { table: "", area: "", group: "", view: "table", cell: "", share: "", across: "", beside: [], other: false, chosen: [], language: "" };
const MOST = 50;

export function readView(hash: string): View {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const view = found.get("view");
  const text = (name: string) => (found.get(name) ?? "").slice(0, 2000);
  return {
    table: text("table"), area: text("area"), group: text("group"), cell: text("cell"), share: text("share"), across: text("across"),
    view: view === "areas" || view === "about" ? view : "table", other: found.get("other") === "1", language: text("lang"),
    beside: found.getAll("beside").slice(0, 4), chosen: found.getAll("row").slice(0, MOST),
  };
}

export function writeView(view: View): string {
  const told = new URLSearchParams();
  for (const name of ["table", "area", "group", "cell", "share", "across"] as const) if (view[name]) told.set(name, view[name]);
  if (view.view !== "table") told.set("view", view.view);
  if (view.other) told.set("other", "1");
  if (view.language) told.set("lang", view.language);
  for (const area of view.beside) told.append("beside", area);
  for (const row of view.chosen) told.append("row", row);
  return `#${told.toString()}`;
}

/** The name of a table in a link, which holds whatever the order of the tables is. */
export function tableKey(table: Table): string {
  return `${table.side ? "other:" : ""}${table.part ? `${table.part}/` : ""}${table.name}`;
}
export function tableOf(release: Release, key: string): Table | undefined {
  return release.tables.find((one) => tableKey(one) === key) ?? release.tables.find((one) => one.id === key);
}

export function areaKey(release: Release, areas: Areas, at: number): string {
  return `${release.kinds[areas.kind[at]].name}:${areas.code[at]}`;
}

const places = new WeakMap<Areas, Map<string, number>>();
export function areaOf(release: Release, areas: Areas, key: string): number {
  let known = places.get(areas);
  if (!known) {
    known = new Map(areas.code.map((code, at) => [`${release.kinds[areas.kind[at]].name}:${code}`, at]));
    places.set(areas, known);
  }
  return known.get(key) ?? -1;
}

/** A cell by its codes, or by its number in links of hand. */
export function cellKey(table: Table, cell: number): string {
  return table.columns.map((column, at) => encodeURIComponent(column.codes[table.cells[cell][at]])).join("~");
}
export function cellOf(table: Table, key: string): number {
  if (!key) return table.columns.length ? -1 : 0;
  const found = table.cells.findIndex((_, at) => cellKey(table, at) === key);
  if (found >= 0) return found;
  const number = Number(key);
  return Number.isInteger(number) && number >= 0 && number < table.cells.length ? number : -1;
}

const escaped = (text: string) => text.replaceAll("%", "%25").replaceAll("|", "%7C");
const plain = (text: string) => text.replaceAll("%7C", "|").replaceAll("%25", "%");
export function rowKey(release: Release, areas: Areas, one: Chosen): string {
  const group = one.table.groups ? one.table.groups.codes[one.group] : "";
  return [tableKey(one.table), areaKey(release, areas, one.area), group].map(escaped).concat(cellKey(one.table, one.cell)).join("|");
}
export function chosenOf(release: Release, areas: Areas, key: string): Chosen | null {
  const fields = key.split("|");
  if (fields.length !== 4) return null;
  const [name, area, group] = fields.slice(0, 3).map(plain), cell = fields[3];
  const table = tableOf(release, name);
  if (!table) return null;
  const place = areaOf(release, areas, area);
  // Of links of the first version cells are numbers.
  const at = table.id === name && /^\d+$/.test(cell) && Number(cell) < table.cells.length ? Number(cell) : cellOf(table, cell);
  const of = table.groups ? table.groups.codes.indexOf(group) : 0;
  return place < 0 || of < 0 || at < 0 ? null : { table, area: place, group: of, cell: at };
}
