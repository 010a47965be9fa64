// The panel of strategies: what counts, and what the server found for it. A slider only chooses among the weights that
// the server names.

import { showSections } from "/charts.js";
import { element, fieldNode, id, showFaults } from "/grid.js";

const at = (name) => document.getElementById(name);

function weight(key, label, note, asked, form, changed) {
  const name = `strategy.${key}`;
  const field = element("input", {
    id: id(name), "data-field": name, "data-weight": key, inputmode: "decimal", autocomplete: "off", spellcheck: "false",
    placeholder: "0", value: asked[key], "aria-describedby": note ? `${id(name)}-note` : false,
  });
  const slider = element("input", {
    type: "range", min: 0, max: form.stops.length - 1, step: 1, "data-slider": key, "aria-label": `Weight of ${label}`,
  });
  slider.value = form.places[key] ?? 0;
  slider.addEventListener("input", () => {
    field.value = form.stops[slider.value];
    tellWeight(slider, field);
    changed(key, field.value);
  });
  field.addEventListener("input", () => changed(key, field.value));
  tellWeight(slider, field);
  return element("div", { class: "weight" },
    element("div", {},
      element("label", { for: id(name) }, label),
      ...(note ? [element("span", { class: "hint", id: `${id(name)}-note` }, note)] : [])),
    slider, field, element("p", { class: "fault", "data-fault": name, hidden: true }));
}

function tellWeight(slider, field) {
  slider.setAttribute("aria-valuetext", field.value.trim() || "0");
}

export function buildStrategy(form, asked, changed) {
  at("strategy").hidden = !form;
  if (!form) return;
  const set = (key, value) => {
    changed(key.replace("strategy.", ""), value);
    showKept(asked);
  };
  const choice = (key, label, choices, hint = "") => fieldNode(
    { key: `strategy.${key}`, label, hint, choices }, asked[key], set);
  const named = Object.fromEntries(Object.keys(form.answers).map((key) => [key, key]));
  at("strategy-queries").replaceChildren(...Object.entries(form.answers).map(
    ([key, note]) => weight(`query.${key}`, key, note, asked, form, changed)));
  at("strategy-levels").replaceChildren(...Object.entries(form.levels).map(
    ([key, label]) => weight(`level.${key}`, label, "", asked, form, changed)));
  const several = Object.keys(form.shares).length > 1;
  at("strategy-choices").replaceChildren(
    choice("loss", "What is made least", form.losses),
    ...(several ? [choice("shares", "Shares of geolevels", form.shares)] : []),
    choice("least", "Least share of every query", {}, form.least));
  at("strategy-pair").replaceChildren(
    choice("first", "One answer", named), choice("second", "The other answer", named),
    choice("first_level", "", form.levels), choice("second_level", "Geolevel of the other", form.levels));
  for (const place of ["strategy-found", "strategy-trade-off"]) at(place).replaceChildren();
  at("strategy-said").textContent = "";
  showKept(asked);
}

// Where geolevels keep their shares they have no weights, and two answers of one geolevel share its budget.
function showKept(asked) {
  const kept = asked.shares === "kept";
  at("strategy-by-level").hidden = kept;
  at(id("strategy.second_level")).closest(".field").hidden = kept;
  document.querySelector(`label[for="${id("strategy.first_level")}"]`).textContent =
    kept ? "Geolevel of both" : "Geolevel of the one";
}

export function showStrategy(found) {
  at("strategy").classList.remove("unfound");
  at("take").disabled = false;
  showFaults(found.marked, at("strategy"));
  for (const slider of document.querySelectorAll("#strategy [data-slider]")) {
    if (slider !== document.activeElement) slider.value = found.places[slider.dataset.slider];
    tellWeight(slider, at(id(`strategy.${slider.dataset.slider}`)));
  }
  if (at("strategy-said").textContent !== found.said) at("strategy-said").textContent = found.said;
  showSections(at("strategy-found"), found.found, "h3");
  showSections(at("strategy-trade-off"), found.trade_off, "h3");
}

export function showUnfound(faults) {
  at("strategy").classList.add("unfound");
  at("take").disabled = true;
  return showFaults(faults, at("strategy"));
}
