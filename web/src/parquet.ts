/** A small writer of Parquet: one row group, plain pages, texts and doubles that may be missing. */

export interface Saved { name: string; values: (string | number | null)[] }

/** Thrift's compact protocol, as far as the metadata of Parquet need it. */
class Compact {
  bytes: number[] = [];
  private last = [0];
  varint(value: number): this {
    let left = value;
    while (left >= 0x80) { this.bytes.push((left % 0x80) | 0x80); left = Math.floor(left / 0x80); }
    this.bytes.push(left);
    return this;
  }
  private field(id: number, kind: number): void {
    const step = id - this.last[this.last.length - 1];
    if (step > 0 && step < 16) this.bytes.push((step << 4) | kind);
    else { this.bytes.push(kind); this.varint(id * 2); }
    this.last[this.last.length - 1] = id;
  }
  i32(id: number, value: number): this { this.field(id, 5); return this.varint(value * 2); }
  i64(id: number, value: number): this { this.field(id, 6); return this.varint(value * 2); }
  text(id: number, value: string): this { this.field(id, 8); return this.raw(value); }
  raw(value: string): this { const told = new TextEncoder().encode(value); this.varint(told.length); this.bytes.push(...told); return this; }
  struct(id: number, inner: () => void): this { this.field(id, 12); return this.element(inner); }
  element(inner: () => void): this { this.last.push(0); inner(); this.bytes.push(0); this.last.pop(); return this; }
  list(id: number, kind: number, length: number): this {
    this.field(id, 9);
    if (length < 15) this.bytes.push((length << 4) | kind); else { this.bytes.push(0xf0 | kind); this.varint(length); }
    return this;
  }
}

const DOUBLE = 5, BYTES = 6;

function page(values: (string | number | null)[], isText: boolean): Uint8Array {
  const known = values.filter((value) => value !== null);
  // Whether each value is there: bits, one run of whole bytes.
  const groups = Math.ceil(values.length / 8);
  const levels = new Compact().varint(groups * 2 + 1).bytes;
  for (let group = 0; group < groups; group++) {
    let bits = 0;
    for (let bit = 0; bit < 8; bit++) if (values[group * 8 + bit] !== null && group * 8 + bit < values.length) bits |= 1 << bit;
    levels.push(bits);
  }
  const texts = isText ? known.map((value) => new TextEncoder().encode(String(value))) : [];
  const size = isText ? texts.reduce((sum, text) => sum + 4 + text.length, 0) : 8 * known.length;
  const body = new Uint8Array(4 + levels.length + size);
  const view = new DataView(body.buffer);
  view.setUint32(0, levels.length, true);
  body.set(levels, 4);
  let at = 4 + levels.length;
  if (isText) for (const text of texts) { view.setUint32(at, text.length, true); body.set(text, at + 4); at += 4 + text.length; }
  else for (const value of known) { view.setFloat64(at, value as number, true); at += 8; }
  return body;
}

export function parquet(columns: Saved[]): Uint8Array {
  const rows = columns[0]?.values.length ?? 0;
  const parts: Uint8Array[] = [new TextEncoder().encode("PAR1")];
  let at = 4;
  const chunks = columns.map(({ name, values }) => {
    const isText = values.some((value) => typeof value === "string");
    const body = page(values, isText);
    const head = new Compact();
    head.i32(1, 0).i32(2, body.length).i32(3, body.length).struct(5, () => head.i32(1, rows).i32(2, 0).i32(3, 3).i32(4, 3));
    head.bytes.push(0);
    const start = at;
    parts.push(Uint8Array.from(head.bytes), body);
    at += head.bytes.length + body.length;
    return { name, isText, start, size: at - start };
  });
  const foot = new Compact();
  foot.i32(1, 1).list(2, 12, columns.length + 1);
  foot.element(() => foot.text(4, "schema").i32(5, columns.length));
  for (const chunk of chunks) foot.element(() => {
    foot.i32(1, chunk.isText ? BYTES : DOUBLE).i32(3, 1).text(4, chunk.name);
    if (chunk.isText) foot.i32(6, 0);
  });
  foot.i64(3, rows).list(4, 12, 1).element(() => {
    foot.list(1, 12, chunks.length);
    for (const chunk of chunks) foot.element(() => {
      foot.i64(2, chunk.start).struct(3, () => {
        foot.i32(1, chunk.isText ? BYTES : DOUBLE).list(2, 5, 2).varint(0).varint(6).list(3, 8, 1).raw(chunk.name);
        foot.i32(4, 0).i64(5, rows).i64(6, chunk.size).i64(7, chunk.size).i64(9, chunk.start);
      });
    });
    foot.i64(2, chunks.reduce((sum, chunk) => sum + chunk.size, 0)).i64(3, rows);
  });
  foot.bytes.push(0);
  const end = new Uint8Array(8);
  new DataView(end.buffer).setUint32(0, foot.bytes.length, true);
  end.set(new TextEncoder().encode("PAR1"), 4);
  const whole = [...parts, Uint8Array.from(foot.bytes), end];
  const made = new Uint8Array(whole.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of whole) { made.set(part, place); place += part.length; }
  return made;
}
