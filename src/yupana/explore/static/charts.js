// What follows from the settings: sections of text, tables and charts. Parts that did not change are left alone, so that
// an open list of numbers stays open and nothing jumps while somebody types.

let vega = null;

export function loadVega(there) {
  if (!there) return;
  vega = new Promise((done) => {
    const script = document.createElement("script");
    script.src = "/vega.js";
    script.onload = () => done(window.vegaEmbed);
    script.onerror = () => done(null);
    document.head.append(script);
  });
}

function part(content) {
  const div = document.createElement("div");
  if (content.html !== undefined) return div;
  div.innerHTML =
    '<figure><div class="legends"></div><div class="panels"></div><figcaption></figcaption>' +
    "<details><summary>The numbers drawn</summary><div class=\"numbers\"></div></details></figure>";
  return div;
}

function put(node, html) {
  if (node.shownHtml === html) return;
  const scrolled = [...node.querySelectorAll(".scroll")].map((s) => [s.scrollLeft, s.scrollTop]);
  node.innerHTML = html;
  node.shownHtml = html;
  node.querySelectorAll(".scroll").forEach((s, i) => scrolled[i] && s.scrollTo(...scrolled[i]));
}

async function draw(node, chart) {
  const wanted = JSON.stringify(chart.spec);
  if (node.wanted === wanted) return;
  node.wanted = wanted;
  const embed = await vega;
  if (!embed || node.wanted !== wanted) return;
  // `ast` interprets expressions instead of compiling them, which the page's policy forbids.
  const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: false };
  const canvas = document.createElement("div");
  const result = await embed(canvas, { ...chart.spec, usermeta: { embedOptions: {} } }, options);
  if (node.wanted !== wanted) return result.finalize();
  node.finalize?.();
  node.finalize = () => result.finalize();
  const svg = canvas.querySelector("svg");
  // So that a chart shrinks with a page that is narrower than it was drawn for.
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", chart.label);
  node.querySelector(".canvas").replaceChildren(canvas);
}

function fill(node, content) {
  if (content.html !== undefined) return put(node, content.html);
  put(node.querySelector(".legends"), content.legend);
  put(node.querySelector("figcaption"), "");
  node.querySelector("figcaption").textContent = content.caption;
  node.querySelector("figcaption").shownHtml = undefined;
  put(node.querySelector(".numbers"), content.numbers);
  if (!vega) node.querySelector("details").open = true;
  const panels = node.querySelector(".panels");
  panels.classList.toggle("alone", content.charts.length === 1);
  while (panels.children.length > content.charts.length) panels.lastChild.remove();
  content.charts.forEach((chart, i) => {
    if (!panels.children[i]) {
      const panel = document.createElement("div");
      panel.className = "panel";
      panel.innerHTML = '<h3></h3><div class="canvas"></div>';
      panels.append(panel);
    }
    const heading = panels.children[i].querySelector("h3");
    heading.textContent = chart.title;
    heading.hidden = !chart.title;
    draw(panels.children[i], chart);
  });
  return undefined;
}

const kind = (content) => (content.html !== undefined ? "html" : "figure");

export function showSections(results, sections, heading = "h2") {
  const wanted = new Set(sections.map((s) => `at-${s.anchor}`));
  for (const node of [...results.children]) if (!wanted.has(node.id)) node.remove();
  sections.forEach((section, place) => {
    let node = document.getElementById(`at-${section.anchor}`);
    if (!node) {
      node = document.createElement("section");
      node.id = `at-${section.anchor}`;
      node.append(document.createElement(heading), document.createElement("div"));
    }
    if (results.children[place] !== node) results.insertBefore(node, results.children[place] ?? null);
    node.firstChild.textContent = section.title;
    const body = node.children[1];
    section.content.forEach((content, i) => {
      if (body.children[i]?.dataset.kind !== kind(content)) {
        const made = part(content);
        made.dataset.kind = kind(content);
        if (body.children[i]) body.children[i].replaceWith(made);
        else body.append(made);
      }
      fill(body.children[i], content);
    });
    while (body.children.length > section.content.length) body.lastChild.remove();
  });
}
