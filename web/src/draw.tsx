/** Intervals on one scale, and its axis. */
import { type Row } from "./data";
import { type Scale } from "./numbers";

export function Axis({ scale, locale, few = false }: { scale: Scale; locale: string; few?: boolean }) {
  return (
    <div class="axis" aria-hidden="true">
      {scale.marks.filter((mark) => !few || mark === 0 || mark === scale.marks.at(-1) || (mark === scale.marks[0] && scale.at(0) > 25)).map((mark) => (
        <span style={{ left: `${scale.at(mark)}%` }}>{mark.toLocaleString(locale, { notation: "compact" })}</span>
      ))}
    </div>
  );
}

export function Bar({ row, scale, kind = "" }: { row: Pick<Row, "value" | "low" | "high">; scale: Scale; kind?: string }) {
  const has = !Number.isNaN(row.low) && !Number.isNaN(row.high);
  const low = has ? scale.at(Math.max(row.low, scale.low)) : 0;
  const wide = has ? Math.max(scale.at(Math.min(row.high, scale.high)) - low, 0.4) : 0;
  return (
    <svg class={`bar ${kind}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      {scale.marks.map((mark) => <line x1={scale.at(mark)} x2={scale.at(mark)} y1="0" y2="10" class={mark === 0 ? "zero" : "grid"} />)}
      {has && <rect x={low} width={wide} y="3" height="4" class="interval" />}
      {!Number.isNaN(row.value) && <rect x={scale.at(row.value) - 0.25} width="0.5" y="1" height="8" class="point" />}
    </svg>
  );
}
