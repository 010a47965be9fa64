const data = JSON.parse(document.getElementById("data").textContent);
for (const [key, name] of data.areas) option(pick("area"), key, name);
for (const [code, name] of Object.entries(data.iterations)) {
  const shown = data.tables.some(t => Object.keys(t.rows).some(key => key.endsWith("/" + code)));
  if (shown) option(pick("iteration"), code, code === "*" ? name : code + ". " + name);
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
  const whole = grid(states, {decimals: table.decimals, first: "Area", percent: data.percent, caption});
  if (apart) whole.tBodies[0].prepend(line(rows[0][0], rows[0][1], table.decimals, rows[0][1][2]));
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
    return make("section", {}, ...head, grid(rows, {decimals: table.decimals, percent: data.percent, first: "Line", caption: table.title}));
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
