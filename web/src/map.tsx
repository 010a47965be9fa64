/** A map of one number, on a scale around a break where one means something. */
import { useMemo } from "preact/hooks";
import { classesOf } from "./classes";
import type { OfArea } from "./compared";
import type { Outlines } from "./data";
import { show } from "./numbers";
import { type Shared, areaName, valueWords } from "./shared";
import { fill } from "./words";

interface Told {
  outlines: Outlines; rows: OfArea[]; title: string; broken: { at: number; name: string } | null; isShare: boolean; shared: Shared;
  over: number | null; onOver(area: number | null): void; onPick(area: number): void;
}

export function MapOf({ outlines, rows, title, broken, isShare, shared, over, onOver, onPick }: Told) {
  const { words, locale } = shared;
  const classes = useMemo(() => classesOf(rows, broken?.at ?? null), [rows, broken?.at]);
  const of = useMemo(() => new Map(rows.map((row) => [row.area, row])), [rows]);
  const places = useMemo(() => new Map(outlines.area.map((area, at) => [area, at])), [outlines]);
  const end = (value: number) => `${show(value, locale)}${isShare ? "\u00a0%" : ""}`;
  const pointed = over === null ? undefined : of.get(over);
  const spot = over === null || !places.has(over) ? undefined : outlines.spot[places.get(over)!];
  const shapes = useMemo(() => outlines.area.map((area, at) => (
    <path d={outlines.path[at]} fill-rule="evenodd" class={classes.of.get(area) ?? "none"} onMouseEnter={() => onOver(area)} onClick={() => onPick(area)} />
  )), [outlines, classes]);
  const radius = Math.max(outlines.width, outlines.height) / 60;
  return (
    <figure class="map">
      <figcaption>
        <strong>{broken ? fill(words.legendBreak, title, broken.name) : fill(words.legendCounts, title)}</strong>
        <span class="legend">
          {classes.legend.map(({ shade, low, high }) => <span><i class={shade} />{low === high ? end(low) : `${end(low)} – ${end(high)}`}</span>)}
          {classes.unsure > 0 && <span><i class="unsure" />{fill(words.unsure, broken ? broken.name : "0")} ({classes.unsure.toLocaleString(locale)})</span>}
        </span>
      </figcaption>
      <svg viewBox={`0 0 ${outlines.width} ${outlines.height}`} role="img" aria-label={fill(words.mapOf, title)} onMouseLeave={() => onOver(null)}>
        {shapes}
        {spot && <circle cx={spot[0]} cy={spot[1]} r={radius} class="ring" />}
      </svg>
      <p class="note" aria-hidden="true">
        {pointed ? `${areaName(shared, pointed.area)}: ${isShare ? end(pointed.value) : valueWords(pointed, shared)}${Number.isNaN(pointed.low) ? "" : ` (${end(pointed.low)} – ${end(pointed.high)})`}` : words.point}
      </p>
      {outlines.missing > 0 && <p class="note">{fill(words.notDrawn, outlines.area.length.toLocaleString(locale), (outlines.area.length + outlines.missing).toLocaleString(locale))} {outlines.unused > 0 && fill(words.vintage, outlines.unused.toLocaleString(locale))}</p>}
    </figure>
  );
}
