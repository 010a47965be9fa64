/** Saves what is seen: its numbers as CSV and Parquet, its picture as SVG and PNG. */
import { type Row } from "./data";
import { scaleOf, show } from "./numbers";
import { parquet } from "./parquet";
import { type Words, fill } from "./words";

/** What a view shows. */
export interface Seen {
  name: string; title: string; source: string; danger: string;
  columns: string[]; rows: (string | number)[][];
  lines: { label: string; text: string; row: Pick<Row, "value" | "low" | "high"> }[];
  map?: () => SVGSVGElement | null;
}

function save(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A field of a CSV file; texts that a spreadsheet would take for a formula begin with a quote. */
export function field(value: string | number): string {
  if (typeof value === "number") return Number.isNaN(value) ? "" : String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
export function csvOf(seen: Pick<Seen, "columns" | "rows">): string {
  return `\ufeff${[seen.columns, ...seen.rows].map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;
}

const MOST = 300;
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The view as a picture that needs no style of a page. */
export function svgOf(seen: Seen, words: Words, locale: string): string {
  const lines = seen.lines.slice(0, MOST);
  const scale = scaleOf(lines.map((line) => line.row));
  const width = 960, left = 500, room = width - left - 30;
  const x = (value: number) => (left + (scale.at(value) / 100) * room).toFixed(1);
  const shown: string[] = [];
  let y = 34;
  const text = (at: number, words_: string, more = "") => shown.push(`<text x="${at}" y="${y}" ${more}>${escaped(words_)}</text>`);
  text(20, short(seen.title, 100), 'font-size="20" font-weight="600"');
  if (seen.danger) { y += 24; text(20, seen.danger, 'fill="#a3260f" font-weight="600"'); }
  const map = seen.map?.();
  if (map) {
    y += 14;
    const box = map.viewBox.baseVal, high = Math.min(560, (width - 40) * (box.height / box.width));
    shown.push(`<svg x="20" y="${y}" width="${width - 40}" height="${high.toFixed(0)}" viewBox="0 0 ${box.width} ${box.height}">${painted(map)}</svg>`);
    y += high;
  }
  y += 30;
  const top = y;
  for (const mark of scale.marks) text(Number(x(mark)), mark.toLocaleString(locale, { notation: "compact" }), 'text-anchor="middle" fill="#59636e" font-size="12"');
  for (const line of lines) {
    y += 22;
    text(20, short(line.label, 48));
    text(left - 20, line.text, 'text-anchor="end"');
    const { row } = line;
    if (!Number.isNaN(row.low)) shown.push(`<rect x="${x(row.low)}" y="${y - 9}" width="${Math.max(Number(x(row.high)) - Number(x(row.low)), 1.5).toFixed(1)}" height="8" fill="#9cc3ea"/>`);
    if (!Number.isNaN(row.value)) shown.push(`<rect x="${(Number(x(row.value)) - 1).toFixed(1)}" y="${y - 12}" width="2" height="14" fill="#0b5cad"/>`);
  }
  const grid = scale.marks.map((mark) => `<line x1="${x(mark)}" x2="${x(mark)}" y1="${top + 6}" y2="${y + 6}" stroke="${mark === 0 ? "#59636e" : "#d9dee3"}"/>`);
  y += 30;
  if (seen.lines.length > MOST) { text(20, fill(words.picture, show(MOST, locale), show(seen.lines.length, locale)), 'fill="#59636e" font-size="12"'); y += 18; }
  text(20, short(seen.source, 150), 'fill="#59636e" font-size="11"');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 16}" viewBox="0 0 ${width} ${y + 16}" font-family="system-ui, sans-serif" font-size="14" fill="#1c2127"><rect width="100%" height="100%" fill="#ffffff"/>${grid.join("")}${shown.join("")}</svg>`;
}

/** The shapes of a map with the colours that the page gives them. */
function painted(map: SVGSVGElement): string {
  return [...map.querySelectorAll("path, circle")].map((shape) => {
    const { fill: inner, stroke } = getComputedStyle(shape);
    const copy = shape.cloneNode() as Element;
    copy.removeAttribute("class");
    copy.setAttribute("fill", inner);
    copy.setAttribute("stroke", stroke);
    copy.setAttribute("stroke-width", "0.5");
    return new XMLSerializer().serializeToString(copy);
  }).join("");
}

async function png(svg: string): Promise<Blob> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  const twice = image.height < 8000 ? 2 : 1;
  [canvas.width, canvas.height] = [image.width * twice, image.height * twice];
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("PNG"))), "image/png"));
}

export function Save({ seen, words, locale }: { seen: Seen; words: Words; locale: string }) {
  const columns = () => seen.columns.map((name, at) => ({ name, values: seen.rows.map((row) => (typeof row[at] === "number" && Number.isNaN(row[at]) ? null : row[at])) }));
  const ways: [string, () => void][] = [
    ["CSV", () => save(`${seen.name}.csv`, csvOf(seen), "text/csv")],
    ["Parquet", () => save(`${seen.name}.parquet`, parquet(columns()) as BlobPart, "application/vnd.apache.parquet")],
    ["SVG", () => save(`${seen.name}.svg`, svgOf(seen, words, locale), "image/svg+xml")],
    ["PNG", () => void png(svgOf(seen, words, locale)).then((blob) => save(`${seen.name}.png`, blob, "image/png"))],
  ];
  return (
    <p class="note save">{words.save}:{" "}
      {ways.map(([name, act]) => <button type="button" class="plain" onClick={act}>{name}</button>)}
    </p>
  );
}
