/** The frontier: the least error that each total loss can buy, this scenario, and others. Both axes are logarithmic. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Frontier } from "./server";
import { type Words, fill } from "./words";

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

export function FrontierChart({ frontier, symbol, points, words, language, onTotal }: {
  frontier: Frontier; symbol: string; points: Point[]; words: Words; language: string; onTotal(total: string, done: boolean): void;
}) {
  const [node, width] = useWidth();
  const [held, setHeld] = useState(false);
  const height = width < 420 ? 150 : 210;
  const room = { left: 46, right: 12, top: 22, bottom: 32 };
  const xs = [...frontier.curve.map(([x]) => x), ...points.map((point) => point.at[0])];
  const ys = [...frontier.curve.map(([, y]) => y), ...points.map((point) => point.at[1])];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys) / 1.3, Math.max(...ys) * 1.3];
  const x = (value: number) => room.left + ((width - room.left - room.right) * Math.log(value / x0)) / Math.log(x1 / x0);
  const y = (value: number) => height - room.bottom - ((height - room.top - room.bottom) * Math.log(value / y0)) / Math.log(y1 / y0);
  const number = (value: number) => frontier.relative
    ? `${(100 * value).toLocaleString(language, { maximumSignificantDigits: 2 })}%`
    : value.toLocaleString(language, { maximumSignificantDigits: 2, notation: value >= 1e4 ? "compact" : "standard" });
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
  const label = (point: Point) => {
    const mine = y(point.at[1]);
    const above = point.kind === "here"
      ? !points.some((other) => other !== point && Math.abs(x(other.at[0]) - x(point.at[0])) < 90 && y(other.at[1]) <= mine && mine - y(other.at[1]) < 40)
      : mine <= y(here[1]);
    const left = x(point.at[0]) > width * 0.6;
    return <text x={x(point.at[0]) + (left ? -9 : 9)} y={mine + (above ? -7 : 16)} text-anchor={left ? "end" : "start"} class={point.kind}>{point.name}</text>;
  };
  return (
    <div class="frontier" ref={node}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={said}
        class={held ? "held" : ""}
        onPointerDown={(event) => { if (!near(event)) return; setHeld(true); (event.currentTarget as SVGElement).setPointerCapture(event.pointerId); onTotal(at(event), false); }}
        onPointerMove={(event) => held && onTotal(at(event), false)}
        onPointerUp={(event) => { if (held) onTotal(at(event), true); setHeld(false); }}
        onPointerCancel={() => setHeld(false)}>
        <text class="axis" x={0} y={11}>{axis}</text>
        {marks(y0, y1, 5).map((mark) => (
          <g><line class="grid" x1={room.left} x2={width - room.right} y1={y(mark)} y2={y(mark)} />
            <text class="tick" x={room.left - 6} y={y(mark) + 4} text-anchor="end">{number(mark)}</text></g>
        ))}
        {marks(x0, x1, width < 420 ? 4 : 9).map((mark) => (
          <g><line class="grid" y1={room.top} y2={height - room.bottom} x1={x(mark)} x2={x(mark)} />
            <text class="tick" x={x(mark)} y={height - room.bottom + 14} text-anchor="middle">{mark.toLocaleString(language, { maximumSignificantDigits: 2 })}</text></g>
        ))}
        <text class="axis" x={width - room.right} y={height - 3} text-anchor="end">{`${words.total.toLowerCase()} ${symbol}`}</text>
        <path class="curve" d={frontier.curve.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("")} />
        <text class="curve-name" x={x(frontier.curve[1][0])} y={y(frontier.curve[1][1]) - 6}>{words.possible}</text>
        {frontier.best !== null && <line class="gap" x1={x(here[0])} x2={x(here[0])} y1={y(here[1])} y2={y(frontier.best)} />}
        {points.filter((point) => point.kind !== "here").map((point) => (
          <g><circle class={point.kind} cx={x(point.at[0])} cy={y(point.at[1])} r="4.5" />{label(point)}</g>
        ))}
        {points.filter((point) => point.kind === "here").map((point) => (
          <g><circle class="here" cx={x(point.at[0])} cy={y(point.at[1])} r="7" />{label(point)}</g>
        ))}
      </svg>
      <span class="unseen">{fill("{0}", said)}</span>
    </div>
  );
}
