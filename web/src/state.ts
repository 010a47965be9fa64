/** What is looked at, as the address holds it: a link shows the same to others. */
import type { Release, Areas } from "./data";

export interface View {
  table: string; area: string; group: string; view: "table" | "areas" | "about"; cell: number; chosen: string[];
}
export const START: View = { table: "", area: "", group: "", view: "table", cell: 0, chosen: [] };

export function readView(hash: string): View {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const view = found.get("view");
  const cell = Number(found.get("cell"));
  return {
    table: found.get("table") ?? "", area: found.get("area") ?? "", group: found.get("group") ?? "",
    view: view === "areas" || view === "about" ? view : "table",
    cell: Number.isInteger(cell) && cell >= 0 ? cell : 0,
    chosen: found.getAll("row").slice(0, 50),
  };
}

export function writeView(view: View): string {
  const told = new URLSearchParams();
  if (view.table) told.set("table", view.table);
  if (view.area) told.set("area", view.area);
  if (view.group) told.set("group", view.group);
  if (view.view !== "table") told.set("view", view.view);
  if (view.cell) told.set("cell", String(view.cell));
  for (const row of view.chosen) told.append("row", row);
  return `#${told.toString()}`;
}

export function areaKey(release: Release, areas: Areas, at: number): string {
  return `${release.kinds[areas.kind[at]].name}:${areas.code[at]}`;
}

export function areaOf(release: Release, areas: Areas, key: string): number {
  const [kind, code] = [key.slice(0, key.indexOf(":")), key.slice(key.indexOf(":") + 1)];
  const number = release.kinds.findIndex((one) => one.name === kind);
  for (let at = 0; at < areas.code.length; at++) if (areas.kind[at] === number && areas.code[at] === code) return at;
  return -1;
}

export function areaName(release: Release, areas: Areas, at: number): string {
  const kind = release.kinds[areas.kind[at]].title;
  return areas.name[at] || `${kind} ${areas.code[at]}`;
}
