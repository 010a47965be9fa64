/** Intervals of chosen cells, as `yupana interval` gives them, from the pieces of the tables. */
import { type Row, type Table, type Release, rowsOfArea } from "./data";
import { type Form, type Found, type Operation, type Reason, answerOf, rowThatIs } from "./forms";

export interface Chosen { table: Table; area: number; group: number; cell: number }

/** Writes a row in the measured cells that it adds up; a reason where that cannot be had. */
async function formOf(release: Release, one: Chosen): Promise<Form | Reason> {
  const { table } = one;
  const isEstimated = table.alone === "estimates" && table.choices.length > 0;
  if ((!table.noisy || table.alone) && !isEstimated) return table.alone || "missing";
  const rows = (await rowsOfArea(table, one.area)).filter((row) => row.group === one.group);
  const shown = rows.find((row) => row.cell === one.cell);
  if (!shown || Number.isNaN(shown.value)) return "suppressed";
  const groupCode = table.groups ? table.groups.codes[one.group] : "";
  for (const choice of table.choices) {
    const parts = choice.parts[one.cell];
    if (choice.own === table.name) {
      if (!parts.length || parts.includes(-1)) continue;
      const there = parts.map((part) => rows.find((row) => row.cell === part));
      if (there.every((row) => row)) return form(table, one, there as Row[]);
      continue;
    }
    const own = release.tables.find((t) => t.name === choice.own && t.part === table.part && t.side === table.side);
    if (!own) continue;
    const group = own.groups ? own.groups.codes.indexOf(groupCode) : 0;
    const rowsOfOwn = (await rowsOfArea(own, one.area)).filter((row) => row.group === group);
    if (!rowsOfOwn.length) continue;
    const there = parts.map((part) => rowsOfOwn.find((row) => row.cell === part));
    if (parts.length && there.every((row) => row)) return form(own, { ...one, group }, there as Row[]);
  }
  return form(table, one, [shown]);
}

function form(table: Table, one: Chosen, rows: Row[]): Form | Reason {
  if (rows.some((row) => Number.isNaN(row.measured))) return "suppressed";
  const cells = new Map<string, number>();
  const known = new Map<string, { value: number; variance: number }>();
  for (const row of rows) {
    const key = `${table.id}/${one.area}/${one.group}/${row.cell}`;
    cells.set(key, (cells.get(key) ?? 0) + 1);
    known.set(key, { value: row.measured, variance: row.variance });
  }
  return { cells, known };
}

async function rowOf(one: Chosen): Promise<Row | undefined> {
  return (await rowsOfArea(one.table, one.area)).find((row) => row.group === one.group && row.cell === one.cell);
}

/** What would be found if nothing told how errors depend on each other: the number alone. */
async function alone(chosen: Chosen[], operation: Operation, reason: Reason): Promise<Found | Reason> {
  const rows = await Promise.all(chosen.map(rowOf));
  if (rows.some((row) => !row || Number.isNaN(row.value))) return "suppressed";
  const values = rows.map((row) => row!.value);
  if (operation === "ratio" || operation === "share") {
    const below = values.slice(1).reduce((sum, value) => sum + value, 0);
    if (values.length < 2) return "two";
    return below ? { estimate: ((operation === "share" ? 100 : 1) * values[0]) / below, low: NaN, high: NaN, reason } : "zero";
  }
  const estimate = values.reduce((sum, value, at) => sum + (operation === "difference" && at ? -value : value), 0);
  // A row alone keeps its interval where sums have none.
  if (rows.length === 1) return { estimate, low: rows[0]!.low, high: rows[0]!.high, reason: Number.isNaN(rows[0]!.low) && reason === "topdown" ? "without" : undefined };
  return { estimate, low: NaN, high: NaN, reason };
}

/** What a sum has if a row of the table is that sum. */
async function rowOfSum(chosen: Chosen[], operation: Operation): Promise<Found | null> {
  const [{ table, area, group }] = chosen;
  if (table.noisy || chosen.length < 2 || chosen.some((one) => one.table !== table || one.area !== area || one.group !== group)) return null;
  const cell = rowThatIs(table.sums, chosen.map((one) => one.cell), operation);
  const row = cell < 0 ? undefined : await rowOf({ table, area, group, cell });
  return !row || Number.isNaN(row.low) ? null : { estimate: row.value, low: row.low, high: row.high };
}

/** Why errors of two releases cannot be taken for independent; empty where they can. */
export function dependence(release: Release): Reason | "" {
  const [one, other] = release.releases;
  if (!other) return "";
  return release.tables.some((table) => table.same) || one.draws.some((draw) => other.draws.includes(draw)) ? "sameDraw" : "";
}

/** The interval of some chosen cells. Of a ratio the first is divided by the others. */
export async function intervalOf(release: Release, chosen: Chosen[], operation: Operation): Promise<Found | Reason> {
  if (!chosen.length) return "choose";
  const whole = await rowOfSum(chosen, operation);
  if (whole) return whole;
  const forms: Form[] = [];
  for (const one of chosen) {
    const found = await formOf(release, one);
    if (typeof found === "string") return found === "suppressed" ? found : alone(chosen, operation, found);
    forms.push(found);
  }
  const sides = new Set(chosen.map((one) => one.table.side));
  const isEstimated = chosen.some((one) => one.table.alone === "estimates");
  const reason = sides.size > 1 ? (isEstimated ? "estimates" : dependence(release)) : "";
  if (reason) return alone(chosen, operation, reason);
  const { z } = release.releases[chosen[0].table.side];
  if (z === null) return alone(chosen, operation, "confidence");
  const found = answerOf(forms, operation, z);
  if (!isEstimated || typeof found === "string") return found;
  const shown = await alone(chosen, operation, "measured");
  if (chosen.length === 1 || typeof shown === "string") return shown;
  return { ...found, estimate: shown.estimate, measured: found.estimate, reason: found.reason ?? "measured" };
}
