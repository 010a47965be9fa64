{
  const data = JSON.parse(pick("data").textContent);
  const kind = () => data.kinds.find(each => each.key === pick("kind").value);
  const label = ([code, name]) => name === code ? code : name + " (" + code + ")";
  for (const each of data.kinds) option(pick("kind"), each.key, each.name);
  function list(chosen) {
    const wanted = pick("search").value.trim().toLowerCase(), select = pick("area");
    const found = kind().areas.map((area, place) => [place, label(area)])
      .filter(([, text]) => text.toLowerCase().includes(wanted)).sort((a, b) => a[1].localeCompare(b[1], "en"));
    select.replaceChildren();
    for (const [place, text] of found) option(select, place, text);
    if (!found.length) option(select, "", "no area is called so");
    if (found.some(([place]) => String(place) === String(chosen))) select.value = chosen;
    show();
  }
  function show() {
    const place = pick("area").value, here = kind();
    if (place === "") { pick("shown").replaceChildren(); return; }
    const parts = here.tables.map(table => {
      const rows = table.lines.map((text, i) => {
        const count = table.rows[place][i];
        const ends = table.below ? [count - table.below[place][i], count + table.above[place][i]] : [];
        return [make("th", {scope: "row"}, text), [count, ...ends]];
      });
      const some = rows.filter(([, numbers]) => numbers.some(number => number > 0));
      const short = rows.length > 20 && some.length < rows.length ? some : rows;
      const note = short.length < rows.length ? rows.length - short.length + " lines of nothing are left out." : "";
      const words = {second: "Count", percent: data.percent, caption: table.title};
      return make("section", {}, make("h4", {}, table.title), grid(short, words), make("p", {class: "note"}, note));
    });
    pick("shown").replaceChildren(make("h3", {}, label(here.areas[place])), make("div", {class: "tables"}, ...parts));
  }
  const pointer = () => "#profile/" + kind().key + "/" + kind().areas[pick("area").value][0];
  function remember() { if (pick("area").value !== "") history.replaceState(null, "", pointer()); }
  pick("kind").onchange = () => { pick("search").value = ""; list(); remember(); };
  pick("search").oninput = () => list(pick("area").value);
  pick("area").onchange = () => { show(); remember(); };
  pick("choice").onsubmit = event => event.preventDefault();
  function go(key, code) {
    const each = data.kinds.find(one => one.key === key);
    const place = each ? each.areas.findIndex(area => area[0] === code) : -1;
    if (place < 0) return false;
    pick("kind").value = key; pick("search").value = ""; list(place); remember();
    return true;
  }
  list();
  const [part, key, code] = decodeURIComponent(location.hash.slice(1)).split("/");
  if (part === "profile" && code && go(key, code)) pick("profile").scrollIntoView();
  // What a map shows where it is pointed at or tapped; and the way to the profile.
  for (const map of document.querySelectorAll(".map")) {
    const told = map.querySelector(".pointed"), codes = JSON.parse(map.dataset.codes);
    const tell = area => { if (area) told.textContent = area.querySelector("title").textContent; };
    map.addEventListener("pointerover", event => tell(event.target.closest("use")));
    map.addEventListener("click", event => {
      const area = event.target.closest("use");
      if (!area) return;
      tell(area);
      for (const each of map.querySelectorAll("use.chosen")) each.classList.remove("chosen");
      area.classList.add("chosen");
      const code = codes[[...area.parentNode.children].indexOf(area)];
      if (go(map.dataset.kind, code)) told.append(" ", make("a", {href: "#profile"}, "its tables"));
    });
  }
}
