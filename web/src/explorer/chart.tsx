/** The frontier: the least error that each total loss can buy, this scenario, and others. Both axes are logarithmic. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Frontier } from "./server";
import type { Words } from "./words";

export interface Point { name: string; at: [number, number]; kind: "here" | "start" | "other" }

function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const node = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(560);
  useEffect(() => {
    if (!node.current) return;
    const watch = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.round(entry.contentRect.width))));
    watch.observe(node.current);
    return () => watch.disconnect();
  }, []);
  return [node, width];
}

/** Round numbers between two, 1, 2 and 5 of each power of ten; fewer where there is no room. */
function marks(low: number, high: number, most: number): number[] {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) found.push(Number(value.toPrecision(3)));
      }
    }
    if (found.length <= most) return found;
  }
  const all = [];
  const stride = Math.ceil((Math.log10(high) - Math.log10(low)) / most);
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power += stride) all.push(10 ** power);
  return all;
}

type Box = [left: number, top: number, wide: number, high: number];
const overlap = (a: Box, b: Box) => a[0] < b[0] + b[2] && b[0] < a[0] + a[2] && a[1] < b[1] + b[3] && b[1] < a[1] + a[3];

/** A number of an axis in few characters: of one too small or too large to be written out, its power of ten. */
export function tick(value: number, language: string): string {
  if (value >= 1e-3 && value < 1e9) return value.toLocaleString(language, { maximumSignificantDigits: 2, notation: value >= 1e4 ? "compact" : "standard" });
  const [digits, power] = value.toExponential(0).split("e");
  return `${digits === "1" ? "" : `${digits}·`}10${[...String(Number(power))].map((one) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(one)]).join("")}`;
}

export function FrontierChart({ frontier, symbol, points, words, language, onTotal }: {
  frontier: Frontier; symbol: string; points: Point[]; words: Words; language: string; onTotal(total: string, done: boolean): void;
}) {
  const [node, width] = useWidth();
  const [held, setHeld] = useState(false);
  const height = width < 420 ? 150 : 210;
  const xs = [...frontier.curve.map(([x]) => x), ...points.map((point) => point.at[0])];
  const ys = [...frontier.curve.map(([, y]) => y), ...points.map((point) => point.at[1])];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys) / 1.3, Math.max(...ys) * 1.3];
  const number = (value: number) => (frontier.relative ? `${tick(100 * value, language)}%` : tick(value, language));
  const rows = marks(y0, y1, 5);
  const room = { left: Math.max(30, 10 + 7 * Math.max(...rows.map((mark) => number(mark).length))), right: 16, top: 30, bottom: 34 };
  const longest = Math.max(...marks(x0, x1, 9).map((mark) => tick(mark, language).length));
  const x = (value: number) => room.left + ((width - room.left - room.right) * Math.log(value / x0)) / Math.log(x1 / x0);
  const y = (value: number) => height - room.bottom - ((height - room.top - room.bottom) * Math.log(value / y0)) / Math.log(y1 / y0);
  const here = frontier.here;
  const axis = frontier.relative ? words.yRelative : words.yCounts;
  const said = `${words.frontier}. ${words.here}: ${symbol} ${here[0].toPrecision(4)}, ${axis} ${number(here[1])}. `
    + (frontier.best === null ? "" : `${words.possible}: ${number(frontier.best)}.`);
  const at = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const share = (event.clientX - box.left - room.left) / (width - room.left - room.right);
    return (x0 * (x1 / x0) ** Math.min(1, Math.max(0, share))).toPrecision(4);
  };
  /** Only the point itself is dragged: a touch elsewhere scrolls. */
  const near = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    return Math.hypot(event.clientX - box.left - x(here[0]), event.clientY - box.top - y(here[1])) < 26;
  };
  // Names stand where nothing else does: beside their point, or not at all. This scenario comes first.
  const taken: Box[] = points.map((point) => [x(point.at[0]) - 6, y(point.at[1]) - 6, 12, 12]);
  const placed = [...points].reverse().map((point) => {
    const name = point.name.length > 26 ? `${point.name.slice(0, 25)}…` : point.name;
    const [px, py, wide] = [x(point.at[0]), y(point.at[1]), 7.4 * name.length];
    const found = ([[9, -19], [-9 - wide, -19], [9, 5], [-9 - wide, 5], [-wide / 2, -28], [-wide / 2, 12]] as const)
      .map(([dx, dy]): Box => [px + dx, py + dy, wide, 15])
      .find((box) => box[0] >= room.left && box[0] + box[2] <= width && box[1] >= 12 && box[1] + 15 <= height - room.bottom && !taken.some((other) => overlap(box, other)));
    if (found) taken.push(found);
    return found && <text x={found[0]} y={found[1] + 12} class={point.kind}>{name}</text>;
  });
  // The curve is named at that of its ends which is free.
  const ends = frontier.curve.length < 2 ? [] : ([[1, 0], [frontier.curve.length - 2, 7 * words.possible.length]] as const)
    .map(([at, back]): Box => [x(frontier.curve[at][0]) - back, y(frontier.curve[at][1]) - 20, 7 * words.possible.length, 15]);
  const named = ends.find((box) => !taken.some((other) => overlap(box, other)));
  return (
    <div class="frontier" ref={node}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={said}
        class={held ? "held" : ""}
        onPointerDown={(event) => { if (!near(event)) return; setHeld(true); (event.currentTarget as SVGElement).setPointerCapture(event.pointerId); onTotal(at(event), false); }}
        onPointerMove={(event) => held && onTotal(at(event), false)}
        onPointerUp={(event) => { if (held) onTotal(at(event), true); setHeld(false); }}
        onPointerCancel={() => setHeld(false)}>
        <text class="axis" x={0} y={11}>{axis}</text>
        {rows.map((mark) => (
          <g><line class="grid" x1={room.left} x2={width - room.right} y1={y(mark)} y2={y(mark)} />
            <text class="tick" x={room.left - 6} y={y(mark) + 4} text-anchor="end">{number(mark)}</text></g>
        ))}
        {marks(x0, x1, Math.floor((width - room.left) / (7 * longest + 18))).map((mark) => (
          <g><line class="grid" y1={room.top} y2={height - room.bottom} x1={x(mark)} x2={x(mark)} />
            <text class="tick" x={x(mark)} y={height - room.bottom + 14} text-anchor={width - x(mark) < 3.6 * tick(mark, language).length ? "end" : "middle"}>{tick(mark, language)}</text></g>
        ))}
        <text class="axis" x={width - room.right} y={height - 3} text-anchor="end">{`${words.total.toLowerCase()} ${symbol}`}</text>
        <path class="curve" d={frontier.curve.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("")} />
        {named && <text class="curve-name" x={named[0]} y={named[1] + 12}>{words.possible}</text>}
        {frontier.best !== null && <line class="gap" x1={x(here[0])} x2={x(here[0])} y1={y(here[1])} y2={y(frontier.best)} />}
        {points.filter((point) => point.kind !== "here").map((point) => (
          <g><circle class={point.kind} cx={x(point.at[0])} cy={y(point.at[1])} r="4.5"><title>{point.name}</title></circle></g>
        ))}
        {points.filter((point) => point.kind === "here").map((point) => (
          <g><circle class="here" cx={x(point.at[0])} cy={y(point.at[1])} r="7" /></g>
        ))}
        {placed}
      </svg>
    </div>
  );
}
