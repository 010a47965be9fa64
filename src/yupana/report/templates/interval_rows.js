"use strict";
// Tables of numbers with their intervals, each with a bar of where it lies.
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
const write = (value, decimals) => value.toLocaleString("en-US",
  {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
function bar(estimate, lower, upper, most) {
  const span = make("span", {"aria-hidden": "true"});
  const at = value => Math.min(100, 100 * value / (most || 1));
  span.append(make("i", {}), make("b", {}));
  span.children[0].style.left = at(lower) + "%";
  span.children[0].style.width = at(upper) - at(lower) + "%";
  span.children[1].style.left = at(estimate) + "%";
  return make("td", {class: "bar"}, span);
}
// A row's numbers are the estimate, and the ends of its interval if it has one.
function line(head, numbers, decimals, most) {
  const [estimate, lower, upper] = numbers;
  const first = make("td", {class: "n e"}, write(estimate, decimals));
  if (lower === undefined) return make("tr", {}, head, first);
  return make("tr", {}, head, first,
    make("td", {class: "n i"}, write(lower, decimals) + " – " + write(upper, decimals)), bar(estimate, lower, upper, most));
}
function grid(rows, {decimals = 0, first = "", second = "Estimate", percent, caption}) {
  const intervals = rows.some(row => row[1].length > 1);
  const most = Math.max(...rows.map(row => row[1][row[1].length - 1]));
  const heads = make("tr", {}, make("th", {scope: "col"}, first), make("th", {scope: "col", class: "n"}, second));
  if (intervals) {
    heads.append(make("th", {scope: "col", class: "n"}, percent + "% interval"),
      make("th", {class: "bar", "aria-hidden": "true"}, ""));
  }
  const body = make("tbody", {}, ...rows.map(([head, numbers]) => line(head, numbers, decimals, most)));
  return make("table", {"aria-label": caption}, make("thead", {}, heads), body);
}
