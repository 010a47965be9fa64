/** What all parts of the page share: the release, the view, names, and rows as they come. */
import { useEffect, useState } from "preact/hooks";
import { type Areas, type Release, type Row, type Table, Missing } from "./data";
import type { Reason } from "./forms";
import { show } from "./numbers";
import type { View } from "./state";
import { type Words, fill } from "./words";

export interface Shared { release: Release; areas: Areas; words: Words; locale: string; view: View; go(to: Partial<View>): void }

/** A text of a release, which may be very long: the whole of it is told as one points at it. */
const LONG = 160;
export function Label({ text }: { text: string }) {
  return text.length > LONG ? <bdi title={text}>{`${text.slice(0, LONG)}…`}</bdi> : <bdi>{text}</bdi>;
}
export function short(text: string): string {
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

export function titleOf(shared: Shared, table: Table): string {
  return table.name === "tabulation" ? shared.words.topdownHistogram : table.title;
}
export function columnTitle(shared: Shared, table: Table, at: number): string {
  return table.columns[at].name === "variable" ? shared.words.variable : table.columns[at].title;
}

export function kindName({ release, words }: Shared, kind: number): string {
  const { name, title } = release.kinds[kind];
  return words.kinds[name.toLowerCase()] ?? (title || name.replaceAll("_", " "));
}
const NATION = /^(us|usa|nation)$/i;
export function areaName(shared: Shared, at: number): string {
  return short(wholeName(shared, at));
}
export function wholeName(shared: Shared, at: number): string {
  const kind = shared.areas.kind[at], name = kindName(shared, kind);
  return shared.areas.name[at] || (NATION.test(shared.release.kinds[kind].name) ? name : `${name} ${shared.areas.code[at]}`);
}

export function labelOf(table: Table, cell: number): string[] {
  return table.columns.map((column, at) => column.labels[table.cells[cell][at]] || column.codes[table.cells[cell][at]]);
}
/** What a line is called below those that it stands in of: without their words. */
export function lineOf(table: Table, cell: number): string[] {
  const [label, ...rest] = labelOf(table, cell);
  let found = label;
  for (let at = 0; at < cell && table.depths[cell]; at++) {
    const above = `${labelOf(table, at)[0]}: `;
    if (table.depths[at] < table.depths[cell] && label.startsWith(above)) found = label.slice(above.length);
  }
  return [found, ...rest];
}
export function cellName(shared: Shared, table: Table, cell: number): string {
  return short(labelOf(table, cell).join(", ") || titleOf(shared, table));
}
export function groupLabel(table: Table, group: number): string {
  return table.groups ? table.groups.labels[group] || table.groups.codes[group] : "";
}

export function valueWords(row: Pick<Row, "value"> | undefined, shared: Shared): string {
  if (!row) return "";
  return Number.isNaN(row.value) ? shared.words.suppressed : show(row.value, shared.locale);
}
export function intervalWords(row: Pick<Row, "value" | "low" | "high"> | undefined, isNoisy: boolean, locale: string): string {
  if (!row || Number.isNaN(row.low)) return "";
  // Of whole numbers ends of sums are shown whole, too.
  const digits = Number.isInteger(row.value) ? 0 : 2;
  if (isNoisy) return `± ${show(row.high - row.value, locale, digits)}`;
  return `${show(row.low, locale, digits)} – ${show(row.high, locale, digits)}`;
}

export function reasonWords(words: Words, reason: Reason | undefined): string {
  return reason ? words.reasons[reason] : "";
}
export function faultWords(words: Words, error: unknown): string {
  if (typeof DecompressionStream === "undefined") return words.old;
  return error instanceof Missing ? fill(words.missing, error.message) : String(error instanceof Error ? error.message : error);
}

export function sourceOf({ release, words }: Shared, side = 0): string {
  const told = release.releases[side];
  return fill(words.citation, told.title, told.folder, told.created.slice(0, 10), told.software, told.sha256.slice(0, 16));
}
export function dangerOf({ release, words }: Shared): string {
  const marked = release.releases.filter((one) => one.status.kind === "danger");
  if (!marked.length) return "";
  return marked.some((one) => one.status.words === "CONFIDENTIAL") ? words.confidential : words.danger;
}

/** What a promise gives; null until then, and an error where it fails. */
export function useFound<T>(read: () => Promise<T>, key: string): T | Error | null {
  const [found, setFound] = useState<{ key: string; value: T | Error } | null>(null);
  useEffect(() => {
    let wanted = true;
    read().then((value) => wanted && setFound({ key, value }), (error: Error) => wanted && setFound({ key, value: error }));
    return () => { wanted = false; };
  }, [key]);
  return found?.key === key ? found.value : null;
}
