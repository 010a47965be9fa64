/** Intervals of sums, differences, shares and ratios of noisy cells, as `yupana interval` gives them (docs/intervals.md). */
import { type Row, type Table, type Release, rowsOfArea } from "./data";

export interface Chosen { table: string; area: number; group: number; cell: number }
export interface Found { estimate: number; low: number; high: number; words: string }
export type Operation = "sum" | "difference" | "ratio" | "share";

interface Measured { value: number; variance: number }
interface Form { cells: Map<string, number>; known: Map<string, Measured> }

/** Writes a row in the measured cells that it adds up; a reason where that cannot be had. */
async function formOf(release: Release, one: Chosen): Promise<Form | string> {
  const table = release.tables.find((t) => t.id === one.table)!;
  if (!table.noisy) return table.alone;
  if (table.alone) return table.alone;
  const rows = (await rowsOfArea(table, one.area)).filter((row) => row.group === one.group);
  const shown = rows.find((row) => row.cell === one.cell);
  if (!shown || Number.isNaN(shown.value)) return "A number that is left out or suppressed has no interval.";
  const groupCode = table.groups ? table.groups.codes[one.group] : "";
  for (const choice of table.choices) {
    const parts = choice.parts[one.cell];
    if (choice.own === table.name) {
      if (!parts.length || parts.includes(-1)) continue;
      const there = parts.map((part) => rows.find((row) => row.cell === part));
      if (there.every((row) => row)) return form(table.id, one, there as Row[]);
      continue;
    }
    const own = release.tables.find((t) => t.name === choice.own && t.part === table.part);
    if (!own) continue;
    const group = own.groups ? own.groups.codes.indexOf(groupCode) : 0;
    const rowsOfOwn = (await rowsOfArea(own, one.area)).filter((row) => row.group === group);
    if (!rowsOfOwn.length) continue;
    const there = parts.map((part) => rowsOfOwn.find((row) => row.cell === part));
    if (parts.length && there.every((row) => row)) return form(own.id, { ...one, group }, there as Row[]);
  }
  return form(table.id, one, [shown]);
}

/** A row alone keeps its interval where sums have none. */
async function published(release: Release, one: Chosen): Promise<Found | null> {
  const table = release.tables.find((t) => t.id === one.table)!;
  if (table.noisy && !table.alone) return null;
  const row = (await rowsOfArea(table, one.area)).find((r) => r.group === one.group && r.cell === one.cell);
  return row && !Number.isNaN(row.low) ? { estimate: row.value, low: row.low, high: row.high, words: "" } : null;
}

function form(table: string, one: Chosen, rows: Row[]): Form {
  const cells = new Map<string, number>();
  const known = new Map<string, Measured>();
  for (const row of rows) {
    const key = `${table}/${one.area}/${one.group}/${row.cell}`;
    cells.set(key, (cells.get(key) ?? 0) + 1);
    known.set(key, { value: row.value, variance: row.variance });
  }
  return { cells, known };
}

function combine(forms: Form[], weights: number[]): Form {
  const cells = new Map<string, number>();
  const known = new Map<string, Measured>();
  forms.forEach((one, at) => {
    for (const [key, times] of one.cells) cells.set(key, (cells.get(key) ?? 0) + weights[at] * times);
    for (const [key, measured] of one.known) known.set(key, measured);
  });
  return { cells, known };
}

function moments(a: Form, b: Form): [number, number, number, number, number] {
  let x = 0, y = 0, vx = 0, vy = 0, c = 0;
  for (const [key, w] of a.cells) { const m = a.known.get(key)!; x += w * m.value; vx += w * w * m.variance; }
  for (const [key, w] of b.cells) { const m = b.known.get(key)!; y += w * m.value; vy += w * w * m.variance; }
  for (const [key, w] of a.cells) c += w * (b.cells.get(key) ?? 0) * a.known.get(key)!.variance;
  return [x, y, vx, vy, c];
}

/** The interval of some chosen cells. Of a ratio the first is divided by the second, by Fieller (1954). */
export async function intervalOf(release: Release, chosen: Chosen[], operation: Operation): Promise<Found | string> {
  if (chosen.length === 1 && (operation === "sum" || operation === "difference")) {
    const lone = await published(release, chosen[0]);
    if (lone) return lone;
  }
  const forms: Form[] = [];
  for (const one of chosen) {
    const found = await formOf(release, one);
    if (typeof found === "string") return found;
    forms.push(found);
  }
  const z = release.z;
  if (z === null) return "The release does not tell a confidence.";
  if (!forms.length) return "Choose rows of a table.";
  if (operation === "sum" || operation === "difference") {
    const whole = combine(forms, forms.map((_, at) => (operation === "difference" && at ? -1 : 1)));
    const [x, , v] = moments(whole, whole);
    const half = z * Math.sqrt(v);
    return { estimate: x, low: x - half, high: x + half, words: "" };
  }
  if (forms.length < 2) return "Choose two rows: the first is divided by the second.";
  const [x, y, vx, vy, c] = moments(forms[0], combine(forms.slice(1), forms.slice(1).map(() => 1)));
  const scale = operation === "share" ? 100 : 1;
  if (y === 0) return "What is divided by is 0.";
  const a = y * y - z * z * vy, b = x * y - z * z * c, d = x * x - z * z * vx;
  const root = b * b - a * d;
  const estimate = (scale * x) / y;
  if (a <= 0) {
    return { estimate, low: NaN, high: NaN, words: "What is divided by may be 0, so that the set has no two ends." };
  }
  const half = Math.sqrt(Math.max(root, 0));
  return { estimate, low: (scale * (b - half)) / a, high: (scale * (b + half)) / a, words: "" };
}
