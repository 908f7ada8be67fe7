"use strict";
// The player of a level's page: time, controls, keyboard and the choice of runs.

(async () => {
  const COLOURS = ["#2f8fe0", "#e0782f", "#3fae5a", "#b45fd6", "#d8435f", "#2fb3b0", "#a98a1c", "#7d7fe8"];
  const SPEEDS = [0.25, 0.5, 1, 2, 4];
  const RATE = 60; // frames per second
  const find = (id) => document.getElementById(id);
  const level = JSON.parse(find("data").textContent);
  const runs = level.runs.map((run) => new Run(level, run));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const scene = new Scene(find("canvas"), level, await image(level.walls), await image(level.sheet));
  const time = find("time"), radios = [...document.querySelectorAll("[name=run]")];
  const ghostBoxes = [...document.querySelectorAll(".ghost")], keys = [...find("keys").children];
  let chosen = 0, frame = 0, playing = false, last = 0;

  function image(source) {
    const loaded = new Image();
    loaded.src = source;
    return loaded.decode().then(() => loaded);
  }

  const colour = (number) => COLOURS[number % COLOURS.length];
  const shown = () => ghostBoxes.filter((box) => box.checked && Number(box.value) !== chosen).map((box) => Number(box.value));
  const length = () => Math.max(runs[chosen].frames, ...shown().map((number) => runs[number].frames));
  const seconds = (frames) => (frames / RATE).toFixed(3);

  function show() {
    const run = runs[chosen], now = Math.min(Math.floor(frame), length());
    scene.draw(run, now, {
      colour: colour(chosen),
      ghosts: shown().map((number) => ({ run: runs[number], colour: colour(number) })),
      path: find("path").checked,
    });
    time.max = length();
    time.value = now;
    time.setAttribute("aria-valuetext", `frame ${now}, ${seconds(now)} seconds`);
    find("clock").textContent = `${seconds(now)} / ${seconds(length())} s`;
    find("clock").title = `frame ${now} of ${length()}`;
    find("gold").textContent = `${run.gold(now)}/${level.gold}`;
    find("state").textContent = level.states[run.state(now)] ?? "";
    const input = run.input(now);
    for (const key of keys) key.classList.toggle("down", (input & Number(key.dataset.bit)) !== 0);
  }

  function seek(wanted) {
    frame = Math.min(Math.max(wanted, 0), length());
    show();
  }

  function play(wanted) {
    if (wanted && frame >= length()) frame = 0;
    if (wanted && !playing) {
      last = performance.now();
      requestAnimationFrame(tick);
    }
    playing = wanted;
    find("play").textContent = playing ? "❚❚" : "▶";
    find("play").setAttribute("aria-label", playing ? "Pause" : "Play");
    show();
  }

  function tick(now) {
    if (!playing) return;
    const elapsed = Math.min(Math.max(now - last, 0), 250); // a page that was hidden goes on where it was
    last = now;
    frame += (elapsed / 1000) * RATE * Number(find("speed").value);
    if (frame >= length()) {
      if (!find("loop").checked) {
        frame = length();
        play(false);
        return;
      }
      frame = frame > length() + RATE / 2 ? 0 : frame; // half a second on the last frame
    }
    show();
    requestAnimationFrame(tick);
  }

  function step(frames) {
    play(false);
    seek(Math.floor(Math.min(frame, length())) + frames);
  }

  function choose(number) {
    if (number >= runs.length) return;
    chosen = number;
    radios[number].checked = true;
    history.replaceState(null, "", number ? `#run=${number + 1}` : location.href.split("#")[0]);
    seek(frame);
  }

  /** Choose the run that the address names; return whether it names a frame, which is then shown. */
  function restore() {
    const named = new URLSearchParams(location.hash.slice(1)), wanted = Number(named.get("run") ?? 1) - 1;
    choose(runs[wanted] ? wanted : 0);
    if (!/^\d+$/.test(named.get("frame") ?? "")) return false;
    play(false);
    seek(Number(named.get("frame")));
    history.replaceState(null, "", `#${named}`);
    return true;
  }

  /** Put the address of this frame into the address bar and, if the browser allows it, the clipboard. */
  async function link() {
    play(false);
    const now = Math.min(Math.floor(frame), length());
    history.replaceState(null, "", `#run=${chosen + 1}&frame=${now}`);
    let said = "Link is in the address bar";
    try {
      await navigator.clipboard.writeText(location.href);
      said = "Link copied";
    } catch { /* pages opened as files, and older browsers */ }
    find("link").textContent = said;
    setTimeout(() => { find("link").textContent = "Copy link"; }, 2000);
  }

  function change(box) {
    box.checked = !box.checked;
    box.dispatchEvent(new Event("change"));
  }

  function speed(by) {
    const at = SPEEDS.indexOf(Number(find("speed").value)) + by;
    find("speed").value = SPEEDS[Math.min(Math.max(at, 0), SPEEDS.length - 1)];
  }

  function ghosts(wanted) {
    for (const box of ghostBoxes) box.checked = wanted;
    find("ghosts").setAttribute("aria-pressed", wanted);
    seek(frame);
  }

  const actions = {
    " ": () => play(!playing),
    ArrowLeft: (event) => step(event.shiftKey ? -RATE : -1),
    ArrowRight: (event) => step(event.shiftKey ? RATE : 1),
    Home: () => step(-Infinity),
    End: () => step(Infinity),
    "+": () => speed(1),
    "=": () => speed(1),
    "-": () => speed(-1),
    l: () => change(find("loop")),
    p: () => change(find("path")),
    c: link,
    g: () => ghosts(find("ghosts").getAttribute("aria-pressed") !== "true"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = document.activeElement;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (focused.matches("select, summary") || (key === " " && focused.matches("button, input:not([type=range])"))) return;
    const action = actions[key] ?? (/^[1-9]$/.test(key) ? () => choose(Number(key) - 1) : undefined);
    if (!action) return;
    event.preventDefault();
    action(event);
  });
  find("play").addEventListener("click", () => play(!playing));
  find("back").addEventListener("click", () => step(-1));
  find("forward").addEventListener("click", () => step(1));
  find("link").addEventListener("click", link);
  find("canvas").addEventListener("click", () => play(!playing));
  find("ghosts").addEventListener("click", () => ghosts(find("ghosts").getAttribute("aria-pressed") !== "true"));
  time.addEventListener("input", () => {
    const wanted = Number(time.value); // before play() shows the present frame
    play(false);
    seek(wanted);
  });
  find("path").addEventListener("change", show);
  for (const radio of radios) radio.addEventListener("change", () => choose(Number(radio.value)));
  for (const box of ghostBoxes) box.addEventListener("change", () => seek(frame));
  document.querySelector(".gold").hidden = !level.gold;
  if (runs.length === 1) find("ghosts").hidden = ghostBoxes[0].hidden = document.querySelector(".swatch").hidden = true;
  else document.querySelectorAll(".swatch").forEach((swatch, number) => swatch.style.setProperty("--colour", colour(number)));

  addEventListener("hashchange", restore);
  play(!restore() && !calm);
  document.body.dataset.ready = "";
})();
