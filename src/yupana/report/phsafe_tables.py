"""The final tables of the S-DHC as one page to browse: every number beside its interval."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import yupana
from yupana.products.phsafe.shells import ITERATION_LABELS, WHOSE, Shell, area_name
from yupana.products.phsafe.tables import Group
from yupana.report.html import escape


@dataclass(frozen=True, slots=True)
class FinalTable:
    """A published table: rounded estimates and intervals; arrays of shape (groups, stubs)."""

    shell: Shell
    groups: tuple[Group, ...]
    estimate: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


_BY: Final = {"householder": "of the householder", "person": "of each person"}


def tables_page(tables: Sequence[FinalTable], confidence: float, status: str, combination: str, nation: str) -> str:
    """Lay out final tables as one HTML file with its data in it.

    Parameters
    ----------
    tables : sequence of FinalTable
    confidence : float
        Of the intervals.
    status : str
        Of the manifest.
    combination : "independent" or "joint"
    nation : str
        What the sum over states is called.
    """
    areas = list(dict.fromkeys((group.region_type, group.region_id) for table in tables for group in table.groups))
    data: dict[str, Any] = {
        "areas": [[kind[0] + code, area_name(kind, code, nation)] for kind, code in areas],
        "iterations": ITERATION_LABELS,
        "percent": f"{100 * confidence:g}",
        "tables": [_table_data(table) for table in tables],
    }
    warned = status.isupper()
    note = "invented people, or noise from a seed: nothing here may be published." if warned else ""
    joint = (
        "Every number uses all measurements that bear on it: states and the nation, races and everyone, tables of the "
        "same people. Lines add up only where no count had to be kept from falling below zero."
        if combination == "joint"
        else "Every cell is estimated from its own measurement. Within a table of counts the lines add up; states need "
        "not add up to the nation, nor one table agree with another."
    )
    embedded = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>S-DHC tables · {escape(status)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<p class="status{" warned" if warned else ""}" role="note"><strong>{escape(status)}</strong> {escape(note)}</p>
<h1>Supplemental Demographic and Housing Characteristics</h1>
<p>The brackets hold the true count or average with a probability of {100 * confidence:g} percent, as far as the noise
goes: they do not speak of truncation of large households, nor of errors of the census itself. {escape(joint)}</p>
<form id="choice">
<label>Area <select id="area"></select></label>
<label>Race or ethnicity <select id="iteration"></select></label>
</form>
<p id="heading" aria-live="polite"></p>
</header>
<noscript><p>This page needs scripts to show its tables. The same numbers are in PH1 to PH8 beside it.</p></noscript>
<main id="main"></main>
<dialog id="compare"><form method="dialog"><button>Close</button></form><div id="compared"></div></dialog>
<footer><p>Made by yupana {escape(yupana.__version__)}. This file loads nothing from elsewhere.</p></footer>
<script type="application/json" id="data">{embedded}</script>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _table_data(table: FinalTable) -> dict[str, Any]:
    decimals = 0 if table.shell.ratio is None else 2

    def numbers(values: NDArray[np.float64]) -> list[float] | list[int]:
        return [int(v) for v in values] if decimals == 0 else [round(float(v), 2) for v in values]

    rows = {}
    for place, group in enumerate(table.groups):
        triple = [numbers(values[place]) for values in (table.estimate, table.lower, table.upper)]
        rows[f"{group.region_type[0]}{group.region_id}/{group.iteration}"] = triple
    by = WHOSE[table.shell.source]
    return {
        "name": table.shell.name,
        "title": table.shell.title,
        "universe": table.shell.universe,
        "by": _BY[by] if by else "",
        "decimals": decimals,
        "stubs": [[stub.label, stub.depth] for stub in table.shell.stubs],
        "rows": rows,
    }


_STYLE: Final = """
:root { --ink: #1c2126; --soft: #59636e; --paper: #fff; --card: #f4f6f8; --line: #d5dbe1; --link: #0b5cad;
  --mark: #9cc3ea; --dot: #0b5cad; --warn-ink: #5c1a00; --warn: #ffe9dc; --warn-line: #d9480f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --soft: #a3adb8; --paper: #14181c; --card: #1e242a;
  --line: #38414a; --link: #7fb8f0; --mark: #2c5b8a; --dot: #9fd0ff; --warn-ink: #ffd9c4; --warn: #3b1a0c;
  --warn-line: #f08050; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .8rem 0 .4rem; }
h2 { font-size: 1.1rem; line-height: 1.3; margin: 0; }
p { max-width: 48rem; margin: .3rem 0 .7rem; }
.status { max-width: none; padding: .5rem .8rem; background: var(--card); border-left: 5px solid var(--line); }
.status.warned { color: var(--warn-ink); background: var(--warn); border-color: var(--warn-line); }
#choice { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: .6rem 1.2rem; }
label { font-size: .85rem; color: var(--soft); flex: 1 1 12rem; max-width: 26rem; }
select { display: block; width: 100%; font: inherit; font-size: 1rem; padding: .35rem; color: var(--ink);
  background: var(--paper); border: 1px solid var(--soft); border-radius: 4px; }
#heading { font-size: 1.15rem; font-weight: 600; margin: 1rem 0 .4rem; }
main { columns: 34rem 2; column-gap: 2rem; }
section { border-top: 3px solid var(--line); padding-top: .5rem; margin-bottom: 1.4rem; break-inside: avoid; }
.note { color: var(--soft); font-size: .86rem; margin: .1rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .5rem .22rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
thead th { color: var(--soft); font-weight: 500; font-size: .8rem; }
tbody th { font-weight: 400; }
.n { text-align: right; white-space: nowrap; }
td.e { font-weight: 600; }
td.i { color: var(--soft); }
.bar { width: 22%; padding-right: 0; }
.bar span { display: block; position: relative; height: .7rem; }
.bar i { position: absolute; top: .2rem; height: .3rem; min-width: 2px; background: var(--mark); border-radius: 2px; }
.bar b { position: absolute; top: 0; width: 2px; margin-left: -1px; height: .7rem; background: var(--dot); }
button.stub { all: unset; cursor: pointer; text-decoration: underline dotted var(--soft) 1px;
  text-underline-offset: 3px; }
button.stub:focus-visible, select:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
dialog { width: min(52rem, 94vw); max-height: 90vh; color: var(--ink); background: var(--paper);
  border: 1px solid var(--line); border-radius: 8px; }
dialog::backdrop { background: #0008; }
dialog form { text-align: right; margin: 0; position: sticky; top: 0; }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .86rem; }
@media (max-width: 34rem) { .bar { display: none; } table { font-size: .88rem; } h1 { font-size: 1.35rem; } }
@media print { #choice, dialog { display: none; } section { break-inside: avoid; } }
"""

_SCRIPT: Final = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const pick = id => document.getElementById(id);
const make = (name, attributes, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") node.onclick = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};
const option = (select, value, text) => select.append(make("option", {value}, text));
for (const [key, name] of data.areas) option(pick("area"), key, name);
for (const [code, name] of Object.entries(data.iterations)) {
  const shown = data.tables.some(t => Object.keys(t.rows).some(key => key.endsWith("/" + code)));
  if (shown) option(pick("iteration"), code, code === "*" ? name : code + ". " + name);
}
const write = (value, table) => value.toLocaleString("en-US",
  {minimumFractionDigits: table.decimals, maximumFractionDigits: table.decimals});
function bar(estimate, lower, upper, most) {
  const span = make("span", {"aria-hidden": "true"});
  const at = value => Math.min(100, 100 * value / (most || 1));
  span.append(make("i", {}), make("b", {}));
  span.children[0].style.left = at(lower) + "%";
  span.children[0].style.width = at(upper) - at(lower) + "%";
  span.children[1].style.left = at(estimate) + "%";
  return make("td", {class: "bar"}, span);
}
function line(head, numbers, table, most) {
  const [estimate, lower, upper] = numbers;
  return make("tr", {}, head, make("td", {class: "n e"}, write(estimate, table)),
    make("td", {class: "n i"}, write(lower, table) + " – " + write(upper, table)), bar(estimate, lower, upper, most));
}
function grid(table, rows, first, caption) {
  const most = Math.max(...rows.map(row => row[1][2]));
  const heads = make("tr", {}, make("th", {scope: "col"}, first), make("th", {scope: "col", class: "n"}, "Estimate"),
    make("th", {scope: "col", class: "n"}, data.percent + "% interval"),
    make("th", {class: "bar", "aria-hidden": "true"}, ""));
  const body = make("tbody", {}, ...rows.map(([head, numbers]) => line(head, numbers, table, most)));
  return make("table", {"aria-label": caption}, make("thead", {}, heads), body);
}
function at(table, key, place) { const row = table.rows[key]; return row && row.map(numbers => numbers[place]); }
function compare(table, place, iteration) {
  const areas = data.areas.filter(([key]) => table.rows[key + "/" + iteration]);
  const rows = areas.map(([key, name]) =>
    [make("th", {scope: "row"}, name), at(table, key + "/" + iteration, place)]);
  // Averages of all states and of each are alike in size; counts are not, so the sum has a scale of its own.
  const apart = table.decimals === 0 && rows.length > 1 && areas[0][0] === "U1";
  const states = rows.slice(apart ? 1 : 0);
  const caption = table.name + ". " + table.stubs[place][0] + ", by area";
  const words = table.title + " · " + data.iterations[iteration] +
    (apart ? ". The bars compare states; that of their sum has a scale of its own." : "");
  const whole = grid(table, states, "Area", caption);
  if (apart) whole.tBodies[0].prepend(line(rows[0][0], rows[0][1], table, rows[0][1][2]));
  pick("compared").replaceChildren(make("h2", {}, caption), make("p", {class: "note"}, words), whole);
  pick("compare").showModal();
}
function show() {
  const area = pick("area").value, iteration = pick("iteration").value;
  const name = pick("area").selectedOptions[0].textContent;
  pick("heading").textContent = name + " · " + data.iterations[iteration];
  const sections = data.tables.map(table => {
    const numbers = table.rows[area + "/" + iteration];
    const by = iteration !== "*" && table.by ? " · race and ethnicity " + table.by : "";
    const head = [make("h2", {}, table.name + ". " + table.title),
      make("p", {class: "note"}, "Universe: " + table.universe + by)];
    if (!numbers) {
      return make("section", {}, ...head, make("p", {class: "note"}, "Not published for this area and group."));
    }
    const rows = table.stubs.map(([label, depth], place) => {
      const button = make("button", {class: "stub", type: "button", title: "compare areas",
        onclick: () => compare(table, place, iteration)}, label);
      const head = make("th", {scope: "row"}, button);
      head.style.paddingLeft = 1.1 * depth + "rem";
      return [head, at(table, area + "/" + iteration, place)];
    });
    return make("section", {}, ...head, grid(table, rows, "", table.title));
  });
  pick("main").replaceChildren(...sections);
  history.replaceState(null, "", "#" + area + "/" + iteration);
}
const [area, iteration] = decodeURIComponent(location.hash.slice(1)).split("/");
if (data.areas.some(([key]) => key === area)) pick("area").value = area;
if (iteration && data.iterations[iteration]) pick("iteration").value = iteration;
pick("choice").onchange = show;
pick("choice").onsubmit = event => event.preventDefault();
show();
"""
