/** A map of one number: areas shaded in five classes of equal size, and named as one points at them. */
import { useMemo, useState } from "preact/hooks";
import type { Outlines, Row } from "./data";
import type { Language, Words } from "./words";

interface Told {
  outlines: Outlines; rows: Row[]; title: string; words: Words; language: Language; name(area: number): string; onPick(area: number): void;
}

export function MapOf({ outlines, rows, title, words, language, name, onPick }: Told) {
  const [over, setOver] = useState<number | null>(null);
  const { classes, ends, unsure } = useMemo(() => classesOf(rows), [rows]);
  const of = useMemo(() => new Map(rows.map((row) => [row.area, row])), [rows]);
  const pointed = over === null ? undefined : of.get(over);
  const show = (value: number) => value.toLocaleString(language, { maximumFractionDigits: 2 });
  return (
    <figure class="map">
      <figcaption><span dir="auto">{title}</span>
        <span class="legend">
          {ends.map((end, at) => <span><i class={`shade-${at}`} />{`${show(end[0])} – ${show(end[1])}`}</span>)}
          {unsure > 0 && <span><i class="shade-unsure" />{words.unsure}</span>}
        </span>
      </figcaption>
      <svg viewBox={`0 0 ${outlines.width} ${outlines.height}`} role="img" aria-label={title} onMouseLeave={() => setOver(null)}>
        {outlines.area.map((area, at) => (
          <path d={outlines.path[at]} fill-rule="evenodd" class={`shade-${classes.get(area) ?? "none"}${over === area ? " over" : ""}`}
            onMouseEnter={() => setOver(area)} onClick={() => onPick(area)} />
        ))}
      </svg>
      <p class="note" aria-hidden="true">{pointed ? `${name(pointed.area)}: ${show(pointed.value)}${Number.isNaN(pointed.low) ? "" : ` (${show(pointed.low)} – ${show(pointed.high)})`}` : words.legend}</p>
    </figure>
  );
}

/** Areas whose interval holds 0 have no shade of their own: their differences may be noise alone. */
function classesOf(rows: Row[]): { classes: Map<number, number | "unsure">; ends: [number, number][]; unsure: number } {
  const isUnsure = (row: Row) => row.low <= 0 && row.high >= 0 && row.low < row.high;
  const known = rows.filter((row) => !Number.isNaN(row.value) && !isUnsure(row)).sort((a, b) => a.value - b.value);
  const classes = new Map<number, number | "unsure">();
  for (const row of rows) if (isUnsure(row)) classes.set(row.area, "unsure");
  const ends: [number, number][] = [];
  const number = Math.min(5, known.length);
  known.forEach((row, at) => {
    let place = Math.floor((at * number) / known.length);
    // Equal numbers have one shade.
    if (at && known[at - 1].value === row.value) place = classes.get(known[at - 1].area) as number;
    classes.set(row.area, place);
    ends[place] = [ends[place]?.[0] ?? row.value, row.value];
  });
  return { classes, ends: ends.filter(Boolean), unsure: rows.filter(isUnsure).length };
}
