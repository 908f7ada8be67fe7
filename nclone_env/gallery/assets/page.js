"use strict";
// The page of a gallery's levels: it opens a level, shows one mode of it, and does what all modes share: the clock, keys,
// touch and gamepad, files and links. The address says what is shown: #level=NAME&mode=play&run=2&frame=300, or &policy=NAME, with
// inputs=... for a whole run and map=... for a level that the gallery does not have.

(async () => {
  const SPEEDS = ["0.125", "0.25", "0.5", "1", "2", "4"];
  const BITS = { ArrowLeft: 4, KeyA: 4, ArrowRight: 2, KeyD: 2, Space: 1, ArrowUp: 1, KeyZ: 1, KeyW: 1 };
  const MODES = ["watch", "play", "tas", "edit", "check"];
  const down = new Set(), calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let mode = "watch", last = 0, loop = 0, pads = 0, pause = false, keeping;

  const page = {
    playing: false, due: 0, tapped: 0, doc: undefined, take: undefined, modes: {},

    // What is shown

    /** Draw a run, where it is. */
    draw(run, { ghosts = [], ...options } = {}) {
      const others = ghosts.map(({ run: ghost, colour }) => ({ row: ghost.rows().slice(), colour })); // before the run: its rows are valid until the next call
      scene.draw(run.rows(), { ...options, shooters: run.level.shooters, ghosts: others });
      follow(run);
    },

    /** Show time, keys, gold and state of a run. */
    readout(run, frame, length, held) {
      find("time").max = length;
      find("time").value = frame;
      find("time").setAttribute("aria-valuetext", `frame ${frame}, ${seconds(frame)} seconds`);
      find("clock").textContent = mode === "play" || (mode === "watch" && page.live.on) ? `${seconds(frame)} s` : `${seconds(frame)} / ${seconds(length)} s`;
      find("clock").title = `frame ${frame} of ${length}`;
      find("gold").textContent = `${run.ninja.gold}/${page.doc.gold}`;
      find("state").textContent = run.state === "playing" ? game.states[run.ninja.state] ?? "" : causeOf(run);
      const byte = held ?? (frame && frame <= run.length ? run.inputs[frame - 1] : 0);
      for (const key of find("keys").children) key.classList.toggle("down", (byte & Number(key.dataset.bit)) !== 0);
    },

    show() { if (page.doc) current().show(); },

    /** Write over the picture, with buttons [text, action]; nothing hides the text, the same text stays as it is. */
    say(text, ...buttons) {
      if (text && text === find("message").textContent) return;
      find("message").hidden = !text;
      find("message").replaceChildren(element("span", { textContent: text }), ...buttons.map(([textContent, onclick]) => element("button", { type: "button", textContent, onclick })));
    },

    /** Do something that may refuse what it gets; say why. */
    async attempt(action) {
      try { return await action(); } catch (error) { page.say(error.message, ["OK", () => page.say("")]); }
    },

    play(wanted) {
      if (wanted && !page.playing) {
        last = performance.now();
        page.due = 0;
        current().again?.();
        cancelAnimationFrame(loop);
        loop = requestAnimationFrame(tick);
      } else if (page.playing) page.keep();
      page.playing = wanted;
      find("play").textContent = wanted ? "❚❚" : "▶";
      find("play").setAttribute("aria-label", wanted ? "Pause" : "Play");
      page.show();
    },

    speed(value) { find("speed").value = value; },
    nameOf: (event) => (event.key.length === 1 ? event.key.toLowerCase() : event.key),

    // Levels and runs

    /** The simulated run of an entry {inputs}; it is made when it is first asked for. */
    runOf(entry) { return (entry.run ??= page.doc.sim.run(entry.inputs)); },

    /** Add a run to those of the level; its end, frames and gold are those of the simulator. The same inputs count once. */
    add(entry) {
      const { runs } = page.doc, same = runs.find((each) => each.inputs.length === entry.inputs.length && each.inputs.every((byte, at) => byte === entry.inputs[at]));
      if (same) return same;
      const run = page.runOf(entry);
      let frames = run.length;
      run.at(frames);
      if (run.state !== "playing") { // the first frame in which it has ended
        let low = 0;
        while (low < frames) { const middle = (low + frames) >> 1; run.at(middle); if (run.state === "playing") low = middle + 1; else frames = middle; }
        run.at(frames);
      }
      Object.assign(entry, { frames, gold: run.ninja.gold, end: run.state === "playing" ? game.states[run.ninja.state] : causeOf(run), made: true });
      runs.push(entry);
      page.modes.watch.list();
      return entry;
    },

    /** Open a level {level, runs, facts, name}; the simulator throws if it cannot be played. */
    open(doc) {
      const sim = simulator.level(files.writeMap(doc.level));
      page.doc?.runs.forEach((entry) => { entry.run?.free(); delete entry.run; });
      page.take?.free();
      page.doc = { facts: [], name: "", ...doc, sim, gold: sim.gold, runs: [] };
      page.take = sim.run();
      for (const run of doc.runs ?? []) page.doc.runs.push({ ...run });
      for (const run of doc.inputs ?? []) page.add(run);
      const { title, author } = doc.level;
      find("title").textContent = title.trim() || doc.name || "Level without a title";
      find("byline").textContent = [doc.label ?? "", author].filter(Boolean).join(" · ");
      document.title = `${find("title").textContent} · ${gallery.title}`;
      find("canvas").setAttribute("aria-label", `The level ${find("title").textContent}`);
      find("facts").replaceChildren(...page.doc.facts.flatMap(([name, value]) => [element("dt", { textContent: name }), element("dd", { textContent: value })]));
      fillLevels();
      find("pieces").hidden = !page.doc.gold;
      fit();
      for (const each of Object.values(page.modes)) each.reset();
      page.setMode(mode);
    },

    setMode(wanted) {
      if (wanted !== mode) current().leave?.(), letGo();
      page.say("");
      if (mode === "watch" && wanted === "tas" && page.take.length === 0) page.take.reset(page.modes.watch.inputs), page.take.at(page.modes.watch.frame);
      mode = wanted;
      page.playing = false;
      for (const tab of document.querySelectorAll("[data-mode]")) tab.setAttribute("aria-selected", tab.dataset.mode === mode);
      for (const part of document.querySelectorAll("[data-modes]")) part.hidden = !part.dataset.modes.split(" ").includes(mode);
      find("pads").hidden = mode !== "play" || !matchMedia("(pointer: coarse)").matches;
      document.body.dataset.mode = mode;
      fit();
      page.play(false);
      if (mode === "play") find("canvas").focus({ preventScroll: true }); // space jumps, it presses no button
      current().enter();
      page.show();
      address();
    },

    // Files and links

    download(bytes, suffix, name = find("title").textContent) {
      const plain = name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|-+$/g, "").slice(0, 60) || "level";
      const href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
      element("a", { href, download: plain + suffix }).click();
      setTimeout(() => URL.revokeObjectURL(href), 10000);
    },

    /** Return the hash of the trajectory of inputs, 8 bytes. */
    hashOf(sim, inputs) {
      const run = sim.run(inputs);
      const states = function* () { for (let frame = 1; frame <= inputs.length; frame++) { run.at(frame); yield run.ninja; } };
      const hash = files.trajectoryHash(states(), inputs.length);
      run.free();
      return hash;
    },

    async save(inputs) {
      checkMoved();
      const settings = { level: page.doc.name ? page.doc.label : find("title").textContent };
      page.download(await files.writeReplay(page.doc.level, inputs, page.hashOf(page.doc.sim, inputs), settings), ".replay");
    },

    /** Open files that were dropped or chosen; name those that are refused. */
    async openFiles(chosen) {
      const refused = [];
      for (const file of [...chosen]) await page.openFile(file).catch((error) => refused.push(`${file.name}: ${error.message}`));
      if (refused.length) page.say(refused.join("; "), ["OK", () => page.say("")]);
    },

    async openFile(file) {
      const found = await files.open(new Uint8Array(await file.arrayBuffer())), label = file.name.replace(/\.\w+$/, "");
      if (found.kind === "submission") { page.setMode("check"); return page.modes.check.submission(file.name, found.submission); }
      if (found.kind === "policy") { if (mode !== "edit") page.setMode("watch"); return page.live.add(label, found.policy); }
      if (found.levels.length > 1) gallery.opened = found.levels;
      const place = gallery.digests.indexOf(files.hex(files.digest(found.levels[0])).slice(0, 16)); // a level of this gallery?
      const own = place < 0 ? { level: found.levels[0], name: found.levels.length > 1 ? "opened-0" : "", label } : await fetchLevel(gallery.levels[place][0]);
      page.open(own);
      if (found.inputs) {
        page.setMode("watch");
        page.modes.watch.choose(page.doc.runs.indexOf(page.add({ label, inputs: found.inputs })));
        page.modes.check.recording(file.name, found, page.doc.sim);
        page.play(true);
      } else if (mode === "watch" && !page.live.on) page.setMode("play"); // there is no run to watch
    },
  };

  const scene = new Scene(find("canvas"));
  const current = () => page.modes[mode];
  page.scene = scene;

  /** Fit the canvas to the part of the world that the mode shows. */
  function fit() {
    if (!page.doc) return;
    const area = mode === "edit" ? wholeWorld() : usedArea(page.doc.level);
    for (const side of ["width", "height"]) find("canvas").style.setProperty(`--${side}`, area[side]);
    const zoom = Math.min(2, wholeWorld().width / area.width, wholeWorld().height / area.height);
    const scale = Math.min(2 * zoom, find("canvas").clientWidth * devicePixelRatio / area.width); // no more pixels than are seen
    scene.setLevel(mode === "edit" ? page.modes.edit.level : page.doc.level, area, scale, themeNow());
  }
  page.fit = fit;

  /** Keep the ninja in view where the picture is wider than the screen. */
  function follow(run) {
    const { parentElement: stage, clientWidth: width } = find("canvas"), { area } = scene;
    if (width > stage.clientWidth) stage.scrollLeft = ((run.ninja.x - area.left) / area.width) * width - stage.clientWidth / 2;
  }

  function tick(now) {
    if (!page.playing) return;
    const elapsed = Math.min(Math.max(now - last, 0), 250); // after a moment of a busy machine
    last = now;
    gamepad();
    current().tick((elapsed / 1000) * RATE * Number(find("speed").value));
    if (page.playing) loop = requestAnimationFrame(tick);
  }

  // Keys, touch, gamepad

  page.held = () => {
    let byte = pads | page.tapped;
    for (const code of down) byte |= BITS[code] ?? 0;
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (!pad?.connected) continue;
      const pressed = (number) => pad.buttons[number]?.pressed ?? false, across = pad.axes[0] ?? 0;
      byte |= (pressed(0) ? 1 : 0) | (pressed(15) || across > 0.4 ? 2 : 0) | (pressed(14) || across < -0.4 ? 4 : 0);
    }
    return byte;
  };
  function gamepad() {
    const pressed = [...navigator.getGamepads?.() ?? []].some((pad) => pad?.buttons[9]?.pressed || pad?.buttons[3]?.pressed);
    if (pressed && !pause && mode === "play") page.modes.play.restart();
    pause = pressed;
  }

  addEventListener("keydown", (event) => {
    const focused = document.activeElement, name = page.nameOf(event);
    if (!page.doc || event.altKey || focused.matches("select, summary, textarea, input:not([type=range], [type=checkbox], [type=radio])")) return;
    if ((event.ctrlKey || event.metaKey) && !/^[zy]$/.test(event.key)) return;
    if (name === " " && focused.matches("button, [type=checkbox], [type=radio]") && mode !== "play") return;
    if (name === "Enter" && focused.matches("button")) return;
    const keys = { "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1), c: () => page.attempt(link), s: () => page.attempt(() => page.save(current().inputs)) };
    const moves = event.code in BITS && (mode === "play" || mode === "tas") && !event.ctrlKey && !event.metaKey && !(mode === "tas" && name === " ");
    if (moves) {
      down.add(event.code);
      if (mode === "play") page.tapped |= BITS[event.code];
    } else if (!current().key(event)) {
      if (!(name in keys) || mode === "edit" || mode === "check" || event.ctrlKey || event.metaKey) return;
      keys[name]();
    }
    event.preventDefault();
  });
  addEventListener("keyup", (event) => { down.delete(event.code); current()?.release?.(event); });
  /** Let go of everything: what is let go elsewhere is not noticed here. */
  function letGo() {
    down.clear();
    [pads, page.tapped] = [0, 0];
    page.modes.play?.rewind(false);
  }
  addEventListener("blur", letGo);
  document.addEventListener("visibilitychange", () => { // a page that was hidden goes on where it was, in Play with the next key
    last = performance.now();
    letGo();
    if (document.hidden) current()?.hide?.();
  });
  for (const button of find("pads").children) {
    const bit = Number(button.dataset.bit), set = (on) => (event) => { event.preventDefault(); pads = on ? pads | bit : pads & ~bit; button.classList.toggle("down", on); };
    button.addEventListener("pointerdown", set(true));
    for (const kind of ["pointerup", "pointercancel", "pointerleave"]) button.addEventListener(kind, set(false));
    button.addEventListener("contextmenu", (event) => event.preventDefault());
  }
  function faster(by) {
    const at = SPEEDS.indexOf(find("speed").value) + by;
    page.speed(SPEEDS[Math.min(Math.max(at, 0), SPEEDS.length - 1)]);
  }

  find("play").onclick = () => page.play(!page.playing);
  find("back").onclick = () => current().back();
  for (const kind of ["pointerdown", "pointerup", "pointercancel", "pointerleave"]) find("back").addEventListener(kind, () => { if (mode === "play") page.modes.play.rewind(kind === "pointerdown"); });
  find("forward").onclick = () => current().forward();
  find("again").onclick = () => page.modes.play.restart();
  find("save").onclick = () => page.attempt(() => page.save(current().inputs));
  find("link").onclick = () => page.attempt(link);
  find("canvas").onclick = () => { if (mode === "watch") page.play(!page.playing); };
  find("time").oninput = () => {
    const wanted = Number(find("time").value); // before play() shows the present frame
    page.play(false);
    current().seek(wanted);
  };
  for (const id of ["path", "ghost"]) find(id).onchange = () => page.show();
  for (const tab of document.querySelectorAll("[data-mode]")) tab.onclick = () => page.attempt(() => page.setMode(tab.dataset.mode));
  dark.addEventListener("change", async () => { await loadSheet(); fit(); page.show(); });
  addEventListener("resize", () => { fit(); page.show(); });

  // Links

  const isOwn = () => page.doc.name && !page.doc.name.startsWith("opened") && !page.modes.edit.edited;
  /** The parts of an address that name the level, or hold it where the gallery does not have it, and the mode; if wanted, the inputs of the run and its frame. */
  async function place(withRun, withFrame) {
    const level = page.modes.edit.edited ?? page.doc.level, inputs = withRun ? current().inputs : [], frame = withFrame ? current().frame : 0;
    const state = new URLSearchParams(isOwn() ? { level: page.doc.name } : { map: files.toLink(await files.pack(files.writeMap(level))) });
    if (mode !== "watch") state.set("mode", mode);
    if (inputs.length) state.set("inputs", files.toLink(await files.pack(inputs)));
    if (frame) state.set("frame", frame);
    return state;
  }
  async function address() {
    const { doc } = page, state = await place(current().made, mode === "tas");
    if (doc !== page.doc) return;
    if (page.live.bundled) state.set("policy", page.live.name);
    for (const inputs of page.modes.tas.branches) state.append("branch", files.toLink(await files.pack(inputs)));
    history.replaceState(null, "", `#${state}`);
  }
  page.address = address;
  /** Let the address hold what is being made, after a moment without changes, so that a reload loses nothing. */
  page.keep = () => { clearTimeout(keeping); keeping = setTimeout(address, 200); };
  function checkMoved() {
    if (page.live.on && page.live.moved && mode === "watch") throw new Error("The ninja or the level was changed by hand: the inputs alone do not lead here");
  }

  /** Put the address of the run, whole, into the address bar and, if the browser allows it, the clipboard. */
  async function link() {
    checkMoved();
    page.play(false);
    const state = await place(true, true);
    if (mode === "play") state.delete("mode"); // who opens the link watches it
    history.replaceState(null, "", `#${state}`);
    let said = "Link is in the address bar";
    try {
      await navigator.clipboard.writeText(location.href);
      said = "Link copied";
    } catch { /* pages opened as files, and older browsers */ }
    find("link").textContent = said;
    setTimeout(() => { find("link").textContent = "Copy link"; }, 2000);
  }

  /** Open what the address names. */
  async function restore() {
    const state = new URLSearchParams(location.hash.slice(1)), wanted = state.get("mode");
    mode = MODES.includes(wanted) ? wanted : "watch";
    if (state.has("map")) page.open({ level: files.readMap(await files.unpack(files.fromText(state.get("map")), 1 << 20)) });
    else {
      const level = state.get("level") ?? gallery.levels[0][0];
      if (!gallery.levels.some(([name]) => name === level)) throw new Error(`level: expected one of this gallery, got ${level}`);
      await go(level);
    }
    if (state.has("inputs")) {
      const inputs = await files.unpack(files.fromText(state.get("inputs")), 1 << 20);
      if (mode === "tas") page.take.reset(inputs), page.take.at(Math.min(Number(state.get("frame") ?? 0), inputs.length));
      else if (mode === "play") page.modes.play.resume(inputs);
      else page.modes.watch.choose(page.doc.runs.indexOf(page.add({ label: "from the link", inputs })));
    } else if (state.has("run")) page.modes.watch.choose(Number(state.get("run")) - 1);
    for (const inputs of state.getAll("branch")) page.modes.tas.branch(await files.unpack(files.fromText(inputs), 1 << 20));
    const policy = state.get("policy") ?? "", known = game.policies.some(({ name }) => name === policy);
    if (policy !== page.live.name && (known || (!policy && page.live.bundled))) await page.live.choose(policy, !calm);
    const frame = state.get("frame");
    if (/^\d+$/.test(frame ?? "") && mode === "watch") page.modes.watch.seek(Number(frame));
    page.show();
    page.keep();
    return frame !== null;
  }

  // Levels of the gallery

  async function go(name) {
    const opened = /^opened-(\d+)$/.exec(name);
    page.say("");
    page.open(opened ? { level: gallery.opened[opened[1]], name } : await fetchLevel(name));
  }

  function fillLevels() {
    const opened = (gallery.opened ?? []).map((level, number) => [`opened-${number}`, level.title || `level ${number}`]);
    const own = page.doc && !page.doc.name ? [["", find("title").textContent]] : []; // of a file, a link or the editor
    find("levels").replaceChildren(...[...own, ...opened, ...gallery.levels].map(([value, textContent]) => element("option", { value, textContent })));
    find("levels").value = page.doc?.name ?? "";
  }
  const turn = (by) => {
    const { options, selectedIndex } = find("levels");
    if (options[selectedIndex + by]) page.attempt(() => go(options[selectedIndex + by].value)).then(start);
  };
  find("levels").onchange = () => page.attempt(() => go(find("levels").value)).then(start);
  find("previous").onclick = () => turn(-1);
  find("next").onclick = () => turn(1);
  find("open").onclick = () => find("file").click();
  find("file").onchange = () => page.openFiles(find("file").files).then(() => { find("file").value = ""; });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    page.openFiles(event.dataTransfer.files);
  });

  const start = () => { if (page.doc && mode === "watch") page.play(!calm && (page.live.on || page.doc.runs.length > 0)); };

  const [simulator] = await Promise.all([files.unpack(files.fromText(gallery.module)).then((module) => Simulator.load(module)), loadSheet()]);
  page.simulator = simulator;
  page.live = livePlayer(page);
  Object.assign(page.modes, { watch: watchMode(page), play: playMode(page), tas: tasMode(page), edit: editMode(page), check: checkMode(page) });
  window.page = page; // for the console
  fillLevels();
  addEventListener("hashchange", () => page.attempt(restore));
  const named = await page.attempt(restore);
  if (!page.doc) { // the level of a damaged link; say so above another
    const { firstChild } = find("message");
    await go(gallery.levels[0][0]);
    page.say(firstChild.textContent, ["OK", () => page.say("")]);
  }
  if (!named) start();
  document.body.dataset.ready = "";
})();
