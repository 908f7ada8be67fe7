"use strict";
// Search, order and arrow keys of the list of levels, and their pictures. Without this script the list is complete and its
// links work.

(() => {
  const list = document.getElementById("levels");
  const cards = [...list.children];
  const search = document.getElementById("search");
  const sort = document.getElementById("sort");
  const playable = document.getElementById("playable");
  const count = document.getElementById("count");
  const many = (number) => number.toLocaleString("en");
  const plural = (number) => `${many(number)} level${number === 1 ? "" : "s"}`;
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  const number = (card, name) => (card.dataset[name] === "" ? Infinity : Number(card.dataset[name]));
  const compare = {
    order: () => 0,
    title: (a, b) => collator.compare(a.dataset.title, b.dataset.title),
    shortest: (a, b) => number(a, "frames") - number(b, "frames") || 0,
    longest: (a, b) => descending(a, b, "frames"),
    gold: (a, b) => descending(a, b, "gold"),
    entities: (a, b) => descending(a, b, "entities"),
    easiest: (a, b) => number(a, "difficulty") - number(b, "difficulty") || 0,
    hardest: (a, b) => descending(a, b, "difficulty"),
  };

  function descending(a, b, name) {
    const [left, right] = [number(a, name), number(b, name)];
    if (left === Infinity || right === Infinity) return left - right || 0; // what is not known goes last
    return right - left;
  }

  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const matches = words.every((word) => card.dataset.text.includes(word));
      card.hidden = !matches || (playable.checked && card.dataset.runs === "0");
      shown += !card.hidden;
    }
    count.textContent = shown === cards.length ? plural(shown) : `${many(shown)} of ${plural(cards.length)}`;
    document.getElementById("nothing").hidden = shown > 0;
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (sort.value !== "order") state.set("sort", sort.value);
    if (playable.checked) state.set("runs", "1");
    history.replaceState(null, "", state.size ? `#${state}` : location.href.split("#")[0]);
  }

  let ordered = "order"; // the order of the list, whatever a reload has left in the form

  function reorder() {
    ordered = sort.value;
    list.append(...[...cards].sort((a, b) => compare[sort.value](a, b) || a.dataset.order - b.dataset.order));
  }

  /** Search and sort as the address says. */
  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    search.value = state.get("q") ?? "";
    playable.checked = state.has("runs");
    const wanted = state.get("sort");
    sort.value = [...sort.options].some((option) => option.value === wanted) ? wanted : "order";
    if (sort.value !== ordered) reorder();
    update();
  }

  const steps = { ArrowRight: 1, ArrowLeft: -1 };

  function move(event) {
    const links = [...list.children].filter((card) => !card.hidden).map((card) => card.firstElementChild);
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    let target = 0;
    if (at >= 0) {
      const top = links[0].parentElement.offsetTop;
      const columns = links.findIndex((link) => link.parentElement.offsetTop > top);
      const across = columns < 0 ? links.length : columns;
      target = at + (steps[event.key] ?? (event.key === "ArrowDown" ? across : -across));
    }
    event.preventDefault();
    if (target < 0) search.focus();
    else links[Math.min(target, links.length - 1)].focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = document.activeElement === search;
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.select();
    } else if (event.key === "Escape" && search.value) {
      search.value = "";
      update();
    } else if (event.key === "ArrowDown" && (typing || !document.activeElement.matches("select"))) {
      move(event);
    } else if (event.key.startsWith("Arrow") && list.contains(document.activeElement)) {
      move(event);
    }
  });
  search.form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("li:not([hidden]) a")?.focus();
  });
  search.addEventListener("input", update);
  playable.addEventListener("change", update);
  sort.addEventListener("change", () => { reorder(); update(); });
  const some = cards.filter((card) => card.dataset.runs !== "0").length;
  playable.parentElement.hidden = some === 0 || some === cards.length;
  addEventListener("hashchange", restore);
  restore();

  // Pictures: a level is drawn at its start when it comes into view, with the path of its best run, and forgotten behind it.

  addEventListener("load", async () => {
    const near = new Set();
    let sim, run, last = Promise.resolve();
    const [simulator] = await Promise.all([files.unpack(files.fromText(gallery.module)).then((module) => Simulator.load(module)), loadSheet()]);

    async function draw(card) {
      const canvas = card.querySelector("canvas"), [, name] = card.firstElementChild.hash.split("=");
      if (!near.has(card)) return;
      const { level, runs } = await fetchLevel(name), area = usedArea(level), scene = new Scene(canvas), paths = [];
      if (!near.has(card) || !canvas.clientWidth) return; // no longer in view, or of those that match
      if (sim) sim.replace(files.writeMap(level)); else [sim, run] = [simulator.level(files.writeMap(level))];
      run ??= sim.run();
      if (runs.length) {
        run.reset(runs[0].inputs);
        paths.push({ points: pathOf(run, run.length), colour: dark.matches ? "#7cc0f0" : "#1f6fa8", width: 1.25 * area.width / canvas.clientWidth });
      }
      scene.setLevel(level, area, canvas.clientWidth * devicePixelRatio / area.width, themeNow());
      scene.draw(run.at(0).rows(), { shooters: sim.shooters, paths });
    }
    const queue = (card) => { last = last.then(() => draw(card)).catch((error) => { console.error(error); }); };

    const seen = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) { near.add(target); queue(target); } else if (near.delete(target)) Object.assign(target.querySelector("canvas"), { width: 0, height: 0 });
      }
    }, { rootMargin: "400px" });
    for (const card of cards) seen.observe(card);
    dark.addEventListener("change", async () => { await loadSheet(); near.forEach(queue); });
  });
})();
