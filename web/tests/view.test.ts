import { test } from "node:test";
import assert from "node:assert/strict";
import type { Areas, Release, Table } from "../src/data";
import { classesOf } from "../src/classes";
import { localeOf, scaleOf, show, showAnswer } from "../src/numbers";
import { parquet } from "../src/parquet";
import { csvOf } from "../src/save";
import { START, areaKey, cellKey, cellOf, chosenOf, readView, rowKey, tableKey, tableOf, writeView } from "../src/state";
import { fill, languages } from "../src/words";

const column = (name: string, codes: string[]) => ({ name, title: name, codes, labels: codes.map(() => "") });
const table = {
  id: "t0", side: 0, part: "persons", name: "a|b", title: "A", universe: "", groups: column("G", ["*", "x"]), columns: [column("SEX", ["1", "2"]), column("AGE", ["a~b", "c|d"])],
  cells: [[0, 0], [0, 1], [1, 0]], depths: [], noisy: true, choices: [], alone: "", adds: false, same: false, areas: [[0, 1]], pieces: [],
} as unknown as Table;
const plain = { ...table, id: "t1", name: "plain" } as Table;
const release = { version: 2, releases: [], kinds: [{ name: "state", title: "" }], tables: [table, plain], maps: {} } as Release;
const areas: Areas = { kind: [0, 0], code: ["06", "4:4"], name: ["", ""] };

test("a link holds the view", () => {
  const view = { ...START, table: "persons/plain", area: "state:4:4", group: "*", view: "areas" as const, cell: "1~c%7Cd", share: "1~a~b", across: "SEX", beside: ["state:06"], other: true, language: "es", chosen: ["a|b|c|d"] };
  assert.deepEqual(readView(writeView(view)), view);
  assert.deepEqual(readView(""), START);
});

test("links that are cut off or of hand mean as much as they can", () => {
  for (const odd of ["%%%", "#table", "#row=&row=|||&cell=-1", "#view=nothing&other=yes", `#table=${"x".repeat(9000)}`]) {
    const view = readView(odd);
    assert.equal(view.view, "table");
    assert.ok(view.table.length <= 2000);
    for (const key of view.chosen) assert.equal(chosenOf(release, areas, key), null);
  }
  assert.equal(readView(`#${"row=a&".repeat(500)}`).chosen.length, 50);
});

test("rows are named by codes, whatever these hold", () => {
  for (const of of [table, plain]) {
    const one = { table: of, area: 1, group: 1, cell: 1 };
    assert.deepEqual(chosenOf(release, areas, rowKey(release, areas, one)), one);
  }
  assert.equal(cellOf(table, cellKey(table, 2)), 2);
  assert.equal(cellOf(table, "9~9"), -1);
  assert.equal(tableOf(release, tableKey(plain)), plain);
  assert.equal(areaKey(release, areas, 1), "state:4:4");
  // A link of the first version.
  assert.deepEqual(chosenOf(release, areas, "t1|state:06|*|2"), { table: plain, area: 0, group: 0, cell: 2 });
});

test("numbers are those of the locale", () => {
  assert.equal(show(12345, "en-US"), "12,345");
  assert.equal(show(12345.678, "es"), "12.345,68");
  assert.equal(show(NaN, "en"), "");
  assert.equal(showAnswer(1.23456, 3.1, "ratio", "en"), "1.2346");
  assert.equal(showAnswer(10.6, 12, "sum", "en"), "11");
  assert.equal(localeOf("es", "es-MX"), "es-MX");
  assert.equal(localeOf("es", "en-US"), "es");
  const scale = scaleOf([{ value: -5, low: -10, high: 0 }, { value: NaN, low: NaN, high: NaN }]);
  assert.deepEqual([scale.low, scale.high, scale.at(-5)], [-10, 0, 50]);
});

test("a map has no shade for what noise alone may have made", () => {
  const row = (area: number, value: number, half: number) => ({ area, value, low: value - half, high: value + half });
  const around = classesOf([row(0, -9, 1), row(1, 9, 1), row(2, 0.5, 1), row(3, -2, 1)], 0);
  assert.match(around.of.get(0)!, /^below/);
  assert.match(around.of.get(1)!, /^above/);
  assert.equal(around.of.get(2), "unsure");
  assert.equal(around.unsure, 1);
  const counts = classesOf([row(0, 5, 0), row(1, 5, 0), row(2, 8, 0), { area: 3, value: NaN, low: NaN, high: NaN }], null);
  assert.equal(counts.of.get(0), counts.of.get(1));
  assert.equal(counts.of.has(3), false);
});

test("what is saved is whole", () => {
  assert.equal(csvOf({ columns: ["a", "b"], rows: [["x,\"y\"", 1.5], ["=1+1", NaN]] }), "\ufeffa,b\r\n\"x,\"\"y\"\"\",1.5\r\n'=1+1,\r\n");
  const made = parquet([{ name: "a", values: ["é", "y"] }, { name: "b", values: [1, null] }]);
  const text = new TextDecoder("latin1").decode(made);
  assert.ok(text.startsWith("PAR1") && text.endsWith("PAR1"));
});

test("both languages say everything", () => {
  const holes = (text: string) => [...text.matchAll(/\{\d\}/g)].map(String).sort().join();
  const compare = (one: object, other: object, at: string) => {
    assert.deepEqual(Object.keys(one).sort(), Object.keys(other).sort(), at);
    for (const [key, value] of Object.entries(one)) {
      const there = (other as Record<string, unknown>)[key];
      if (typeof value === "string") assert.equal(holes(value), holes(there as string), `${at}.${key}`);
      else compare(value as object, there as object, `${at}.${key}`);
    }
  };
  compare(languages.en, languages.es, "words");
  assert.equal(fill("{1} of {0}", "a", "b"), "b of a");
});
