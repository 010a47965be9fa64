// The form of a product: fields, and the grid of budgets. It shows what the server answered and reports what is typed.

export function element(name, attributes = {}, ...content) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...content);
  return node;
}

export const id = (key) => `field-${key.replace(/[^A-Za-z0-9]/g, (c) => `_${c.charCodeAt(0)}_`)}`;

export function fieldNode(field, value, changed, more = {}) {
  const attributes = { id: id(field.key), "data-field": field.key, ...more };
  const choices = Object.entries(field.choices ?? {});
  const input = choices.length
    ? element("select", attributes, ...choices.map(([k, words]) => element("option", { value: k }, words)))
    : element("input", { ...attributes, autocomplete: "off", spellcheck: "false" });
  input.value = value;
  input.addEventListener(choices.length ? "change" : "input", () => changed(field.key, input.value));
  const hint = field.hint ? [element("span", { class: "hint", id: `${id(field.key)}-hint` }, field.hint)] : [];
  if (hint.length) input.setAttribute("aria-describedby", `${id(field.key)}-hint`);
  return element("div", { class: "field" },
    element("label", { for: id(field.key) }, field.label), input, ...hint,
    element("p", { class: "fault", "data-fault": field.key, hidden: true }));
}

function cell(name, words, entry, changed, symbol) {
  const [row, column] = words;
  const input = (by, label) => {
    const node = element("input", {
      "data-entry": name, "data-by": by, inputmode: "decimal", autocomplete: "off", spellcheck: "false",
      "aria-label": `${label} of ${row}, ${column}`,
    });
    node.addEventListener("input", () => changed(name, { on: true, by, value: node.value }));
    return element("label", { class: "pair" }, element("span", { "aria-hidden": "true" }, label), node);
  };
  const box = element("input", {
    type: "checkbox", "data-entry": name, "data-by": "on", "aria-label": `Measure ${row}, ${column}`,
    onchange: (event) => changed(name, { on: event.target.checked }),
  });
  return element("td", { "data-cell": name, "data-label": column },
    element("div", { class: "cell" },
      element("div", { class: "switch" }, box, element("span", { class: "share", "data-share": name })),
      input("budget", symbol), input("margin", "MOE"),
      element("p", { class: "fault", "data-fault": name, hidden: true })));
}

export function build(form, settings, symbol, changed) {
  const set = (key, value) => changed.field(key, value);
  document.getElementById("general").replaceChildren(
    ...form.general.map((key) => fieldNode(form.fields[key], settings.fields[key], set)));
  document.getElementById("groups").replaceChildren(...Object.entries(form.groups).map(([words, keys]) =>
    element("details", {}, element("summary", {}, words), element("div", { class: "fields" },
      ...keys.map((key) => fieldNode(form.fields[key], settings.fields[key], set))))));
  const columns = form.columns.filter((c) => form.rows.some((r) => r.cells[c.key]));
  const all = (names, label) => element("input", {
    type: "checkbox", "data-all": names.join("\n"), "aria-label": `Measure all of ${label}`,
    onchange: (event) => changed.entries(names, event.target.checked),
  });
  const head = element("tr", {},
    element("th", { scope: "col" }, form.corner),
    ...columns.map((c) => element("th", { scope: "col" },
      element("label", { class: "all" },
        all(form.rows.map((r) => r.cells[c.key]).filter(Boolean), c.label), element("span", {}, c.label)))));
  const rows = form.rows.map((r) => element("tr", {},
    element("th", { scope: "row" },
      element("label", { class: "all" },
        all(columns.map((c) => r.cells[c.key]).filter(Boolean), r.label), element("span", {}, r.label)),
      ...(r.note ? [element("span", { class: "hint" }, r.note)] : []),
      ...r.fields.map((key) => fieldNode({ ...form.fields[key], hint: "" }, settings.fields[key], set,
        { title: form.fields[key].hint, "aria-label": `${form.fields[key].label} of ${r.label}: ${form.fields[key].hint}` }))),
    ...columns.map((c) => (r.cells[c.key]
      ? cell(r.cells[c.key], [r.label, c.label], settings.entries[r.cells[c.key]], changed.entry, symbol)
      : element("td", { class: "none" }))),
  ));
  document.getElementById("grid").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  const asked = (place, kind, label) => document.getElementById(place).replaceChildren(
    ...columns.map((c) => element("div", { class: "field" },
      element("label", { for: id(`${kind}.${c.key}`) }, c.label),
      element("input", {
        id: id(`${kind}.${c.key}`), "data-field": `${kind}.${c.key}`, "data-column": c.key, inputmode: "decimal",
        autocomplete: "off", placeholder: label,
      }),
      element("p", { class: "fault", "data-fault": `${kind}.${c.key}`, hidden: true }))));
  asked("targets", "target", "no target");
  asked("weights", "weight", "1");
  asked("shares", "share", "as now");
  document.getElementById("sharing").hidden = !form.shares;
}

// Show the settings themselves, where they did not come from the keyboard.
export function showSettings(settings) {
  for (const node of document.querySelectorAll("#general [data-field], #groups [data-field], #grid [data-field]")) {
    if (node !== document.activeElement || node.tagName === "SELECT") node.value = settings.fields[node.dataset.field];
  }
  for (const node of document.querySelectorAll("#grid [data-entry]")) {
    const entry = settings.entries[node.dataset.entry];
    node.classList.toggle("given", entry.by === node.dataset.by);
    if (node.type === "checkbox") node.checked = entry.on;
    else if (node !== document.activeElement && entry.by === node.dataset.by && entry.value.length <= 12) {
      node.value = entry.value;
    }
  }
  for (const node of document.querySelectorAll("#grid [data-all]")) {
    const on = node.dataset.all.split("\n").filter((name) => settings.entries[name].on).length;
    node.checked = on > 0;
    node.indeterminate = on > 0 && on < node.dataset.all.split("\n").length;
  }
}

export function showEntries(entries) {
  for (const node of document.querySelectorAll("#grid td[data-cell]")) {
    const entry = entries[node.dataset.cell];
    node.classList.toggle("off", !entry.on);
    node.querySelector(".share").textContent = entry.share;
    for (const by of ["budget", "margin"]) {
      const input = node.querySelector(`[data-by=${by}]`);
      input.dataset.exact = entry[`${by}_exact`];
      input.title = entry[`${by}_exact`];
      if (input !== document.activeElement) input.value = entry[by];
    }
  }
}

// What followed from other settings would be a wrong number beside these.
export function hideFollowing() {
  for (const node of document.querySelectorAll("#grid input[data-exact]:not(.given)")) {
    if (node !== document.activeElement) node.value = "";
    node.dataset.exact = "";
    node.title = "";
  }
}

// Faults by their fields, in a part of the page whose earlier faults go; what has no place there is answered.
export function showFaults(faults, within = document) {
  for (const node of within.querySelectorAll(".fault")) {
    node.hidden = true;
    node.textContent = "";
  }
  for (const node of within.querySelectorAll("[aria-invalid]")) node.removeAttribute("aria-invalid");
  const homeless = [];
  for (const { field, message } of faults) {
    const place = [...within.querySelectorAll("[data-fault]")].find((n) => n.dataset.fault === field)
      ?? within.querySelector(`[id="fault-${field}"]`);
    if (!field || !place) {
      homeless.push(field ? `${field}: ${message}` : message);
      continue;
    }
    place.textContent = place.textContent ? `${place.textContent} ${message}` : message;
    place.hidden = false;
    if (place.closest("details")) place.closest("details").open = true;
    const marked = [...within.querySelectorAll("[data-field],[data-entry]")].filter(
      (n) => n.dataset.field === field || (n.dataset.entry === field && n.classList.contains("given")));
    for (const node of marked) node.setAttribute("aria-invalid", "true");
  }
  return homeless;
}
