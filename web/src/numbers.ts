/** Numbers as a language writes them, and one scale for all bars of a view. */
import { ticks } from "d3-array";
import type { Row } from "./data";
import type { Operation } from "./forms";

/** The locale of the browser, if it is of the language that the pages are in. */
export function localeOf(language: string, own: string): string {
  return own.startsWith(language) ? own : language;
}

const formats = new Map<string, Intl.NumberFormat>();
export function show(value: number, locale: string, digits?: number): string {
  if (Number.isNaN(value)) return "";
  const most = digits ?? (Number.isInteger(value) ? 0 : 2);
  const key = `${locale}/${most}/${digits === undefined}`;
  let format = formats.get(key);
  if (!format) formats.set(key, (format = new Intl.NumberFormat(locale, { maximumFractionDigits: most, minimumFractionDigits: digits === undefined ? most : 0 })));
  return format.format(value);
}

/** Of whole estimates the ends of sums are whole, too. */
export function showAnswer(value: number, estimate: number, operation: Operation, locale: string): string {
  if (operation === "share") return `${show(value, locale, 2)}\u00a0%`;
  return show(value, locale, operation === "ratio" ? 4 : Number.isInteger(estimate) ? 0 : 2);
}

export interface Scale { low: number; high: number; at(value: number): number; marks: number[] }

/** One scale for all bars of a view, which has 0 in it. */
export function scaleOf(rows: Iterable<Pick<Row, "value" | "low" | "high">>): Scale {
  let low = 0, high = 0;
  for (const row of rows) {
    for (const end of [row.value, row.low, row.high]) {
      if (end < low && end > -Infinity) low = end;
      if (end > high && end < Infinity) high = end;
    }
  }
  if (low === high) high = low + 1;
  const span = high - low;
  return { low, high, at: (value) => (100 * (value - low)) / span, marks: ticks(low, high, 4) };
}
