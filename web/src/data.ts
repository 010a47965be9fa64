/** What a release says, and the pieces of its tables, as `yupana.atlas` writes them. */
import type { Reason } from "./forms";

export interface Column { name: string; title: string; codes: string[]; labels: string[] }
export interface Choice { own: string; parts: number[][] }
export interface Piece { id: string; first: number; last: number }
export interface Table {
  id: string; side: number; part: string; name: string; title: string; universe: string; groups: Column | null; columns: Column[];
  cells: number[][]; depths: number[]; noisy: boolean; choices: Choice[]; alone: Reason | ""; sums: number[][]; adds: boolean; same: boolean; areas: number[][]; pieces: Piece[];
}
export interface Promise_ {
  part: string; unit: string; symbol: "rho" | "epsilon"; loss: number | null; change: string; epsilon: number | null; delta: number;
  attackers: { change: string; right: number }[]; public: string[]; invariants: string[]; tables: number;
}
export interface Budget { name: string; table: string; level: string; answers: number; budget: number | null; margin: number | null; before: number | null }
export interface Budgets { part: string; symbol: string; confidence: number; compared: boolean; same: boolean; rows: Budget[] }
export interface Told {
  title: string; folder: string; product: string; status: { kind: "danger" | "public"; words: string; reasons: string[] }; created: string;
  confidence: number | null; z: number | null; pure: boolean; sha256: string; software: string; draws: string[]; treated: string[]; promises: Promise_[]; leftOut: boolean; madeOf: string; budgets: Budgets[];
}
export interface Release {
  version: number; releases: Told[]; kinds: { name: string; title: string }[]; tables: Table[]; maps: Record<string, string>;
  index?: string; partial?: { left: string[]; command: string };
}
export interface Outlines { width: number; height: number; area: number[]; path: string[]; spot: [number, number][]; missing: number; unused: number }
export interface Areas { kind: number[]; code: string[]; name: string[] }

export interface Rows {
  length: number; area: ArrayLike<number>; group: ArrayLike<number>; cell: ArrayLike<number>; value: ArrayLike<number>;
  low: ArrayLike<number>; high: ArrayLike<number>; variance?: ArrayLike<number>; measured?: ArrayLike<number>;
}
export interface Row { area: number; group: number; cell: number; value: number; low: number; high: number; variance: number; measured: number }

interface Inline { release: Release; areas: Areas; pieces: Record<string, string>; maps: (Outlines & { name?: string })[] }
declare global {
  interface Window {
    atlasRelease(told: Release): void; atlasAreas(told: Areas): void; atlasPiece(id: string, text: string): void;
    atlasMap(told: Outlines): void; atlasInline?: Inline;
  }
}

/** What the pages say if the data are not theirs; `words.ts` has the sentence. */
export class Missing extends Error {}
export const VERSION = 3;

/** Loads a script of the folder: files on a disk cannot be fetched. */
function load(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `data/${name}.js`;
    script.onload = () => { script.remove(); resolve(); };
    script.onerror = () => { script.remove(); reject(new Missing(`data/${name}.js`)); };
    document.head.append(script);
  });
}

export async function loadRelease(): Promise<[Release, Areas]> {
  let release: Release | undefined, areas: Areas | undefined;
  if (window.atlasInline) ({ release, areas } = window.atlasInline);
  else {
    window.atlasRelease = (told) => { release = told; };
    window.atlasAreas = (told) => { areas = told; };
    await Promise.all([load("release"), load("areas")]);
  }
  if (!release || !areas || release.version !== VERSION) throw new Missing("data/release.js");
  return [release, areas];
}

const texts = new Map<string, string>();
const pieces = new Map<string, Promise<Rows>>();

const TYPES = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array } as const;
interface Head { columns: { name: string; at: number; type: keyof typeof TYPES; length: number; of?: (number | null)[] }[] }

async function unpack(text: string): Promise<Rows> {
  // Loops, for `from` takes ten times as long.
  const told = atob(text), bytes = new Uint8Array(told.length);
  for (let at = 0; at < told.length; at++) bytes[at] = told.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Head;
  const found: Record<string, ArrayLike<number>> = {};
  let rows = 0;
  for (const column of head.columns) {
    const read = new TYPES[column.type](buffer, 4 + length + column.at, column.length);
    const { of } = column;
    found[column.name] = of ? meant(read, of) : read;
    rows = column.length;
  }
  return { ...found, length: rows } as unknown as Rows;
}

function meant(places: ArrayLike<number>, of: (number | null)[]): Float64Array {
  const known = of.map((value) => value ?? NaN), found = new Float64Array(places.length);
  for (let at = 0; at < places.length; at++) found[at] = known[places[at]];
  return found;
}

export function loadPiece(id: string): Promise<Rows> {
  let found = pieces.get(id);
  if (!found) {
    const inline = window.atlasInline?.pieces[id];
    window.atlasPiece = (own, text) => { texts.set(own, text); };
    found = (inline === undefined ? load(id) : Promise.resolve()).then(() => {
      const text = inline ?? texts.get(id);
      if (text === undefined) throw new Missing(`data/${id}.js`);
      texts.delete(id);
      return unpack(text);
    });
    pieces.set(id, found);
    // A large table is not kept whole.
    if (pieces.size > 400) pieces.delete(pieces.keys().next().value!);
  }
  return found;
}

function rowAt(rows: Rows, at: number): Row {
  return {
    area: rows.area[at], group: rows.group[at], cell: rows.cell[at], value: rows.value[at], low: rows.low[at],
    high: rows.high[at], variance: rows.variance ? rows.variance[at] : NaN,
    measured: rows.measured ? rows.measured[at] : rows.value[at],
  };
}

/** All rows of an area, which lie together in one piece. */
export async function rowsOfArea(table: Table, area: number): Promise<Row[]> {
  const piece = table.pieces.find((one) => one.first <= area && area <= one.last);
  if (!piece) return [];
  const rows = await loadPiece(piece.id);
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows.area[middle] < area) low = middle + 1; else high = middle;
  }
  const found: Row[] = [];
  for (let at = low; at < rows.length && rows.area[at] === area; at++) found.push(rowAt(rows, at));
  return found;
}

/** One cell of one group in all areas of a kind; tells how far it is, as large tables take a while. */
export async function rowsOfCell(table: Table, group: number, cell: number, isWanted: (area: number) => boolean, tell: (share: number) => void): Promise<Row[]> {
  const found: Row[] = [];
  const wanted = table.pieces.filter((piece) => {
    for (let area = piece.first; area <= piece.last; area++) if (isWanted(area)) return true;
    return false;
  });
  // Several at a time: they are unpacked beside each other.
  for (let at = 0; at < wanted.length; at += 8) {
    for (const rows of await Promise.all(wanted.slice(at, at + 8).map((piece) => loadPiece(piece.id)))) {
      for (let row = 0; row < rows.length; row++) {
        if (rows.cell[row] === cell && rows.group[row] === group && isWanted(rows.area[row])) found.push(rowAt(rows, row));
      }
    }
    if (at + 8 < wanted.length) tell((at + 8) / wanted.length);
  }
  return found;
}

/** The areas of a table, which it holds as runs. */
const expanded = new WeakMap<Table, number[]>();
export function areasOf(table: Table): number[] {
  let found = expanded.get(table);
  if (!found) {
    found = [];
    for (const [first, last] of table.areas) for (let area = first; area <= last; area++) found.push(area);
    expanded.set(table, found);
  }
  return found;
}
export function hasArea(table: Table, area: number): boolean {
  return table.areas.some(([first, last]) => first <= area && area <= last);
}

const maps = new Map<string, Promise<Outlines>>();

export function loadMap(name: string, all: string[]): Promise<Outlines> {
  let found = maps.get(name);
  if (!found) {
    let told = window.atlasInline?.maps[all.indexOf(name)];
    window.atlasMap = (own) => { told = own; };
    found = (told ? Promise.resolve() : load(name)).then(() => {
      if (!told) throw new Missing(`data/${name}.js`);
      return told;
    });
    maps.set(name, found);
  }
  return found;
}

/** The row of the other release that has the same name, group and codes; -1 where it has none. */
export function otherOf(release: Release, table: Table): { table: Table; group(at: number): number; cell(at: number): number } | null {
  const other = release.tables.find((one) => one.side !== table.side && one.name === table.name && one.part === table.part);
  if (!other || other.columns.length !== table.columns.length) return null;
  const place = (column: Column | null, of: Column | null, at: number) => (column && of ? of.codes.indexOf(column.codes[at]) : 0);
  const cells = new Map(other.cells.map((codes, at) => [codes.join(), at]));
  return {
    table: other,
    group: (at) => place(table.groups, other.groups, at),
    cell: (at) => cells.get(table.cells[at].map((code, column) => place(table.columns[column], other.columns[column], code)).join()) ?? -1,
  };
}
