/** Asks the server. Every number on the page comes from here; nothing is computed in the browser. */

export interface Fault { field: string; message: string }
export interface Typed { on: boolean; by: "budget" | "margin"; value: string }
export interface Settings { fields: Record<string, string>; entries: Record<string, Typed> }
export interface Field { key: string; label: string; hint: string; choices: Record<string, string>; group: string }
export interface Listed { key: string; product: string; title: string }
export interface Form {
  key: string; title: string; product: string; unit: string; counts: string; fields: Field[];
  tables: Record<string, string>; levels: Record<string, string>;
  entries: { name: string; table: string; level: string }[]; settings: Settings; production: Settings | null;
}
export interface Told { label: string; shown: string; exact: string; note: string }
export interface Entry {
  on: boolean; budget: string; budget_exact: string; margin: string; margin_exact: string; share?: string; least?: string;
  typical?: string;
}
export interface Part { name: string; share: string; part: number; number: string; of: string }
export interface Frontier { relative: boolean; curve: [number, number][]; here: [number, number]; best: number | null }
export interface View {
  total: string; symbol: string; confidence: string; numbers: Told[]; words: { of: string; change: string; guess: string }[];
  entries: Record<string, Entry>; groups: Record<"table" | "level", Record<string, { share: string; exact: string }>>;
  frontier: Frontier; against_release: string[]; asks: string[];
  unreliable: { known: number; unreliable: number; tables: string[]; new: string[]; rows: Part[]; areas: Part[] };
}
export interface Exact {
  exact: Told | null; attributes: { name: string; loss: string; exact: string; guess: string }[];
  consequences: { title: string; note: string; columns: Record<string, string[]> }[];
}
export interface Compared {
  names: string[]; refused: string[]; points: ([number, number] | null)[];
  rows: { label: string; part: string; shown: string[]; changes: string[] }[];
}

export class Faults extends Error {
  constructor(readonly faults: Fault[]) { super(faults.map((fault) => fault.message).join("; ")); }
}

export async function ask<T>(path: string, body: object, gone: string): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Faults([{ field: "", message: gone }]);
  }
  if (!response.ok) throw new Faults([{ field: "", message: `${gone} (${response.status})` }]);
  const answer = await response.json();
  if (answer.faults) throw new Faults(answer.faults);
  return answer as T;
}

export async function get<T>(path: string): Promise<T> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as T;
}

export function download({ filename, content }: { filename: string; content: string }): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
