/** What a release says, and the pieces of its tables, as `yupana.atlas` writes them. */

export interface Column { name: string; title: string; codes: string[]; labels: string[] }
export interface Choice { own: string; parts: number[][] }
export interface Piece { id: string; first: number; last: number }
export interface Table {
  id: string; part: string; name: string; title: string; groups: Column | null; columns: Column[]; cells: number[][];
  depths: number[]; noisy: boolean; choices: Choice[]; alone: string; areas: number[]; pieces: Piece[];
}
export interface Loss { part: string; symbol: string; loss: number; epsilon: number }
export interface Release {
  version: number; title: string; product: string; status: { kind: "danger" | "public"; words: string; reasons: string[] };
  created: string; confidence: number | null; z: number | null; pure: boolean; sha256: string; software: string;
  losses: Loss[]; kinds: { name: string; title: string }[]; tables: Table[]; maps: Record<string, string>;
}
export interface Outlines { width: number; height: number; area: number[]; path: string[] }
export interface Areas { kind: number[]; code: string[]; name: string[] }

export interface Rows {
  length: number; area: ArrayLike<number>; group: ArrayLike<number>; cell: ArrayLike<number>; value: ArrayLike<number>;
  low: ArrayLike<number>; high: ArrayLike<number>; variance?: ArrayLike<number>;
}
export interface Row { area: number; group: number; cell: number; value: number; low: number; high: number; variance: number }

declare global {
  interface Window {
    atlasRelease(told: Release): void; atlasAreas(told: Areas): void; atlasPiece(id: string, text: string): void;
    atlasMap(told: Outlines): void;
  }
}

/** Loads a script of the folder: files on a disk cannot be fetched. */
function load(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `data/${name}.js`;
    script.onload = () => { script.remove(); resolve(); };
    script.onerror = () => { script.remove(); reject(new Error(`data/${name}.js is missing; copy the whole folder`)); };
    document.head.append(script);
  });
}

export async function loadRelease(): Promise<[Release, Areas]> {
  let release: Release | undefined;
  let areas: Areas | undefined;
  window.atlasRelease = (told) => { release = told; };
  window.atlasAreas = (told) => { areas = told; };
  await Promise.all([load("release"), load("areas")]);
  if (!release || !areas) throw new Error("data/release.js is not what this page reads");
  return [release, areas];
}

const texts = new Map<string, string>();
const pieces = new Map<string, Promise<Rows>>();
window.atlasPiece = (id, text) => { texts.set(id, text); };

const TYPES = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array } as const;
interface Head { columns: { name: string; at: number; type: keyof typeof TYPES; length: number; of?: (number | null)[] }[] }

async function unpack(text: string): Promise<Rows> {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Head;
  const found: Record<string, ArrayLike<number>> = {};
  let rows = 0;
  for (const column of head.columns) {
    const read = new TYPES[column.type](buffer, 4 + length + column.at, column.length);
    const { of } = column;
    found[column.name] = of ? Float64Array.from(read, (place) => of[place] ?? NaN) : read;
    rows = column.length;
  }
  return { ...found, length: rows } as unknown as Rows;
}

export function loadPiece(id: string): Promise<Rows> {
  let found = pieces.get(id);
  if (!found) {
    found = load(id).then(() => {
      const text = texts.get(id);
      if (text === undefined) throw new Error(`data/${id}.js is not what this page reads`);
      texts.delete(id);
      return unpack(text);
    });
    pieces.set(id, found);
  }
  return found;
}

function rowOf(rows: Rows, at: number): Row {
  return {
    area: rows.area[at], group: rows.group[at], cell: rows.cell[at], value: rows.value[at], low: rows.low[at],
    high: rows.high[at], variance: rows.variance ? rows.variance[at] : NaN,
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
  for (let at = low; at < rows.length && rows.area[at] === area; at++) found.push(rowOf(rows, at));
  return found;
}

/** One cell of one group in all areas. */
export async function rowsOfCell(table: Table, group: number, cell: number): Promise<Row[]> {
  const found: Row[] = [];
  for (const piece of table.pieces) {
    const rows = await loadPiece(piece.id);
    for (let at = 0; at < rows.length; at++) {
      if (rows.cell[at] === cell && rows.group[at] === group) found.push(rowOf(rows, at));
    }
  }
  return found;
}

const maps = new Map<string, Promise<Outlines>>();
let lastMap: Outlines | undefined;
window.atlasMap = (told) => { lastMap = told; };

export function loadMap(name: string): Promise<Outlines> {
  let found = maps.get(name);
  if (!found) {
    found = load(name).then(() => {
      if (!lastMap) throw new Error(`data/${name}.js is not what this page reads`);
      return lastMap;
    });
    maps.set(name, found);
  }
  return found;
}
