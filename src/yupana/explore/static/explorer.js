// The page: what is chosen, what the server says of it, files, and comparison. Each window keeps its own scenario.

import { loadVega, showSections } from "/charts.js";
import { build, element, hideFollowing, showEntries, showFaults, showSettings } from "/grid.js";
import { Faults, ask, download, get } from "/server.js";
import { buildStrategy, showStrategy, showUnfound } from "/strategy.js";

const at = (name) => document.getElementById(name);
const KEY = "yupana-explorer";
const NARROW = window.matchMedia("(max-width: 44rem)");

let products = {};
let product = "";
let scenarios = {}; // by product: name, settings, against (or null), what counts (or null)
let earlier = []; // settings of this product, to go back to
let asked = 0;
let timer = 0;
let weighings = 0;
let weighingTimer = 0;

const now = () => scenarios[product];
const symbol = () => (now().settings.fields.mechanism === "puredp" ? "ε" : "ρ");

function keep() {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ version: at("version").textContent, product, scenarios }));
  } catch {
    // Without storage a reload starts anew.
  }
}

function remembered(version) {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
    return found?.version === version ? found : null;
  } catch {
    return null;
  }
}

let changing = ""; // the field that is being typed into: its letters are one step

// Settings change only here, so that every change can be taken back.
function change(settings, { remember = true, field = "" } = {}) {
  if (remember && (!field || field !== changing)) {
    const last = JSON.stringify(now().settings);
    if (earlier.at(-1) !== last) earlier.push(last);
    if (earlier.length > 200) earlier.shift();
  }
  changing = field;
  now().settings = settings;
  at("undo").disabled = earlier.length === 0;
  at("said").textContent = "";
  showSettings(settings);
  keep();
  refreshSoon();
}

const changed = {
  field(key, value) {
    const wasSymbol = symbol();
    change({ ...now().settings, fields: { ...now().settings.fields, [key]: value } }, { field: key });
    if (symbol() !== wasSymbol) rebuild();
  },
  entry(name, part) {
    const { entries } = now().settings;
    const field = part.by ? `${name} ${part.by}` : "";
    change({ ...now().settings, entries: { ...entries, [name]: { ...entries[name], ...part } } }, { field });
  },
  entries(names, on) {
    const entries = { ...now().settings.entries };
    for (const name of names) entries[name] = { ...entries[name], on };
    change({ ...now().settings, entries });
  },
};

function rebuild() {
  const { form, strategy } = products[product];
  build(form, now().settings, symbol(), changed);
  buildStrategy(strategy, now().counts, (key, text) => {
    now().counts[key] = text;
    keep();
    weighSoon();
  });
  at("total-label").textContent = `Total ${symbol()}`;
  at("grid-note").textContent =
    `Each field holds a budget ${symbol()} and the margin of error (MOE) it buys, at the confidence above. ` +
    "What you gave is set in bold; the percentage is its part of the total (in SafeTab, of its pass).";
}

// A product is fetched when it is first opened, and then kept.
async function fetched(key) {
  if (products[key].form) return;
  Object.assign(products[key], await get(`/api/products/${key}`));
  const counts = products[key].strategy?.start ?? null;
  const fresh = { name: "My scenario", settings: products[key].settings, against: null, counts: counts && { ...counts } };
  const shape = (settings) => JSON.stringify([Object.keys(settings?.fields ?? {}), Object.keys(settings?.entries ?? {})]);
  // What a window kept from an explorer with other configurations does not fit this one.
  if (shape(scenarios[key]?.settings) !== shape(fresh.settings)) scenarios[key] = fresh;
  const keys = (texts) => JSON.stringify(Object.keys(texts ?? {}));
  if (keys(scenarios[key].counts) !== keys(counts)) scenarios[key].counts = fresh.counts;
  const { against } = scenarios[key];
  if (against && shape(against.settings) !== shape(fresh.settings)) scenarios[key].against = null;
}

const open = (key) => busily(() => opened(key));

async function opened(key) {
  await fetched(key);
  product = key;
  weighings += 1; // what was found for another product is not shown here
  earlier = [];
  changing = "";
  const { form } = products[key];
  document.title = `${form.title} · Yupana explorer`;
  at("title").textContent = form.title;
  at("intro").textContent = form.intro;
  at("solving").textContent = form.solving;
  at("production").textContent = form.compared[0].toUpperCase() + form.compared.slice(1);
  at("unpin").textContent = at("production").textContent.replace(" of 2020", "");
  at("name").value = now().name;
  at("undo").disabled = true;
  at("said").textContent = "";
  at("results").replaceChildren();
  at("totals").replaceChildren();
  for (const link of document.querySelectorAll("#products a")) {
    if (link.dataset.key === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  rebuild();
  showSettings(now().settings);
  keep();
  await refresh();
}

// While an answer is outstanding the page says so: to screen readers, and to whoever drives it.
let outstanding = 0;

async function busily(work) {
  outstanding += 1;
  document.body.setAttribute("aria-busy", "true");
  try {
    return await work();
  } finally {
    outstanding -= 1;
    if (!outstanding && !timer && !weighingTimer) document.body.removeAttribute("aria-busy");
  }
}

function refreshSoon() {
  document.body.setAttribute("aria-busy", "true");
  clearTimeout(timer);
  timer = setTimeout(refresh, 120);
}

function weighSoon() {
  document.body.setAttribute("aria-busy", "true");
  clearTimeout(weighingTimer);
  weighingTimer = setTimeout(weigh, 60);
}

function weigh() {
  clearTimeout(weighingTimer);
  weighingTimer = 0;
  return busily(weighed);
}

// Of settings that are not understood nothing can be found; the page says so where they are typed.
async function weighed() {
  if (!products[product].strategy || document.body.classList.contains("faulty")) return;
  weighings += 1;
  const mine = weighings;
  try {
    const found = await ask("/api/strategy", {
      product, settings: now().settings, asked: now().counts, narrow: NARROW.matches,
    });
    if (mine === weighings) showStrategy(found);
  } catch (error) {
    if (!(error instanceof Faults)) throw error;
    if (mine !== weighings) return;
    const homeless = showUnfound(error.faults);
    if (homeless.length) at("banner").textContent = homeless.join(" ");
  }
}

function tell(faults) {
  const homeless = showFaults(faults);
  const hidden = faults.length > 0;
  document.body.classList.toggle("faulty", hidden);
  if (hidden) hideFollowing();
  const said = homeless.join(" ");
  const words = !hidden ? "" : said || "Correct the marked field, and the numbers return.";
  if (at("banner").textContent !== words) at("banner").textContent = words;
  for (const name of ["save", "export", "csv", "pin"]) at(name).disabled = hidden;
}

function refresh() {
  clearTimeout(timer);
  timer = 0;
  return busily(answered);
}

async function answered() {
  asked += 1;
  const mine = asked;
  const { settings, against } = now();
  const body = { product, settings, against, narrow: NARROW.matches };
  try {
    const view = await ask("/api/view", body);
    if (mine !== asked) return; // a later question is under way
    tell([]);
    showEntries(view.entries);
    showTotals(view.numbers);
    at("against").textContent = against?.name ?? products[product].form.compared;
    showSections(at("results"), view.sections);
    await weigh();
    if (mine !== asked) return;
    // What takes longer is filled in after the rest.
    const exact = await ask("/api/exact", body);
    if (mine !== asked) return;
    showTotals(exact.numbers);
    const later = Object.fromEntries(exact.sections.map((s) => [s.anchor, s]));
    showSections(at("results"), view.sections.map((s) => later[s.anchor] ?? s));
  } catch (error) {
    if (!(error instanceof Faults)) throw error;
    if (mine === asked) tell(error.faults);
  }
}

function showTotals(numbers) {
  at("totals").replaceChildren(...numbers.map((n) => element("div", {},
    element("dt", {}, n.label),
    element("dd", { "data-total": n.label, "data-exact": n.exact, title: n.exact }, n.shown),
    element("dd", { class: "note" }, n.note))));
  at("total").placeholder = numbers[0]?.shown ?? "";
  at("live").textContent = numbers.slice(0, 1).map((n) => `${n.label}: ${n.shown}`).join("");
}

const solve = (question) => busily(() => solved(question));

async function solved(question) {
  const texts = (place) => Object.fromEntries([...at(place).querySelectorAll("input")].map(
    (input) => [input.dataset.column, input.value]));
  try {
    const answer = await ask("/api/solve", {
      product, settings: now().settings, question, total: at("total").value, total_epsilon: at("total-epsilon").value,
      targets: texts("targets"), weights: texts("weights"), shares: texts("shares"), asked: now().counts,
    });
    document.activeElement?.blur();
    change(answer.settings);
    at("said").textContent = answer.said;
  } catch (error) {
    if (!(error instanceof Faults)) throw error;
    const homeless = showFaults(error.faults);
    if (homeless.length) at("banner").textContent = homeless.join(" ");
  }
}

async function fetchFile(path, more) {
  try {
    download(await ask(path, { product, name: at("name").value, settings: now().settings, ...more }));
  } catch (error) {
    if (!(error instanceof Faults)) throw error;
    const homeless = showFaults(error.faults);
    if (homeless.length) at("banner").textContent = homeless.join(" ");
  }
}

let wanted = "here"; // where a chosen file goes

const chosenFile = () => busily(readFile);

async function readFile() {
  const file = at("file").files[0];
  at("file").value = "";
  if (!file) return;
  try {
    if (file.size > 500000) throw new Faults([{ field: "file", message: "not a scenario: the file is too large" }]);
    const loaded = await ask("/api/load", { text: await file.text() });
    if (wanted === "here") {
      if (loaded.product !== product) {
        history.replaceState(null, "", `#${loaded.product}`);
        await open(loaded.product);
      }
      now().name = loaded.name;
      at("name").value = loaded.name;
      change(loaded.settings);
    } else {
      if (loaded.product !== product) {
        throw new Faults([{ field: "file", message: `this is a scenario of ${loaded.product}, not of ${product}` }]);
      }
      now().against = { name: loaded.name, settings: loaded.settings };
      keep();
      refresh();
    }
    showFaults([]);
    at("said").textContent = loaded.said || `${loaded.name} was loaded.`;
  } catch (error) {
    if (!(error instanceof Faults)) throw error;
    showFaults(error.faults.map((f) => ({ ...f, field: "file" })));
  }
}

function press(name, action) {
  at(name).addEventListener("click", action);
}

function wire() {
  press("undo", () => {
    const last = earlier.pop();
    if (last) change(JSON.parse(last), { remember: false });
  });
  press("scale", () => solve("scale"));
  at("sharing").addEventListener("submit", (event) => { event.preventDefault(); solve("shares"); });
  press("production", () => solve("production"));
  press("save", () => fetchFile("/api/save"));
  press("export", () => fetchFile("/api/export", { form: "configuration" }));
  press("csv", () => fetchFile("/api/export", { form: "csv" }));
  press("print", () => window.print());
  press("load", () => { wanted = "here"; at("file").click(); });
  press("load-against", () => { wanted = "against"; at("file").click(); });
  press("pin", () => {
    now().against = { name: at("name").value.trim() || "earlier", settings: now().settings };
    keep();
    refresh();
  });
  press("unpin", () => { now().against = null; keep(); refresh(); });
  at("file").addEventListener("change", chosenFile);
  at("name").addEventListener("input", () => { now().name = at("name").value; keep(); });
  press("take", () => solve("strategy"));
  for (const form of ["weighing", "pairing"]) at(form).addEventListener("submit", (event) => event.preventDefault());
  for (const question of ["least", "equal", "round"]) {
    at(question).addEventListener("submit", (event) => { event.preventDefault(); solve(question); });
  }
  window.addEventListener("hashchange", async () => {
    const key = location.hash.slice(1);
    if (products[key] && key !== product) { await open(key); at("title").focus(); }
  });
  NARROW.addEventListener("change", refresh);
  const others = new BroadcastChannel(KEY);
  const notice = () => {
    at("windows").hidden = false;
    at("windows").textContent =
      "The explorer is open in another window, too. Each window has its own scenario: a change here does not show there.";
  };
  others.onmessage = ({ data }) => { notice(); if (data === "opened") others.postMessage("here"); };
  others.postMessage("opened");
}

async function start() {
  const told = await get("/api/products");
  loadVega(told.charts);
  at("version").textContent = `Version ${told.version}.`;
  products = Object.fromEntries(told.products.map((p) => [p.key, p]));
  const old = remembered(at("version").textContent);
  scenarios = old?.scenarios ?? {};
  at("products").replaceChildren(...told.products.map((p) => element("li", {},
    element("a", { href: `#${p.key}`, "data-key": p.key }, p.title))));
  wire();
  const key = location.hash.slice(1);
  await open(products[key] ? key : products[old?.product] ? old.product : told.products[0].key);
}

start().catch((error) => { at("banner").textContent = `The explorer could not start: ${error.message}`; });
