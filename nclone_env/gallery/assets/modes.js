"use strict";
// Three things to do with a level: watch runs on it, play it, and make a run frame by frame. A mode has enter(), show(),
// tick(frames) for the frames that have passed, and key(event), which returns whether it was one of its keys.

const RATE = 60; // frames per second
const find = (id) => document.getElementById(id);
const seconds = (frames) => (frames / RATE).toFixed(3);
const COLOURS = ["#2f8fe0", "#e0782f", "#3fae5a", "#b45fd6", "#d8435f", "#2fb3b0", "#a98a1c", "#7d7fe8"];

/** Make an element with properties and children. */
function element(tag, properties = {}, ...children) {
  const { dataset, ...others } = properties, made = Object.assign(document.createElement(tag), others);
  Object.assign(made.dataset, dataset);
  made.append(...children);
  return made;
}

/** What ended a run, in words: the deadly thing that is nearest to the ninja when it dies. */
function causeOf(run) {
  if (run.state === "won") return "won";
  if (run.state !== "died") return "";
  const row = run.rows(), beams = row.length - 4 - 5 * run.level.shooters, { x, y } = run.ninja;
  let least = 8, cause = ""; // pixels between the two, as the ninja has moved on in the frame
  for (let at = 0; at < beams - 3; at += 3) {
    const kind = game.kinds[game.sprites[row[at]]];
    if (!kind?.deadly) continue;
    const gap = Math.hypot(row[at + 1] / game.steps - x, row[at + 2] / game.steps - y) - kind.radius - 10;
    if (gap < least) [least, cause] = [gap, kind.name.replaceAll("_", " ")];
  }
  for (let at = beams; !cause && at < row.length - 4; at += 5) if (row[at] === 0 || row[at] === 1) cause = "shot";
  if (run.inputs.some((byte) => byte & files.SUICIDE)) cause = "given up";
  return `died: ${cause || "impact"}`;
}

/** Watch the runs of a level, one with the others as ghosts. */
function watchMode(page) {
  const { live } = page;
  let chosen = 0, frame = 0, path;
  const boxes = () => [...document.querySelectorAll(".ghost")];
  const current = () => page.doc.runs[chosen];
  const ghosts = () => boxes().filter((box) => box.checked && (live.on || Number(box.value) !== chosen)).map((box) => Number(box.value));
  /** The ghosts after a number of frames. */
  const ghostsAt = (now) => ghosts().map((number) => {
    const run = page.runOf(page.doc.runs[number]);
    run.at(Math.min(now, run.length));
    return { run, colour: COLOURS[number % COLOURS.length] };
  });
  const length = () => Math.max(current()?.inputs.length ?? 0, ...ghosts().map((number) => page.doc.runs[number].inputs.length));

  function seek(wanted) {
    if (live.on) return;
    frame = Math.min(Math.max(wanted, 0), length());
    page.show();
  }

  function choose(number) {
    if (!page.doc.runs[number]) return;
    if (live.on) live.choose("");
    chosen = number;
    path = undefined;
    find("runs").querySelectorAll("[name=run]")[number].checked = true;
    seek(frame);
    page.keep();
  }

  /** List the runs; the one that is chosen stays chosen. */
  function list() {
    const { runs, gold } = page.doc;
    find("runs").replaceChildren(...runs.map((run, number) => {
      const radio = element("input", { type: "radio", name: "run", value: number, checked: number === chosen && !live.on, onchange: () => choose(number) });
      const swatch = element("i", { className: "swatch", hidden: runs.length === 1 });
      swatch.style.setProperty("--colour", COLOURS[number % COLOURS.length]);
      const box = element("input", { type: "checkbox", className: "ghost", value: number, checked: run.ghost ?? false, hidden: runs.length === 1 && !live.on, ariaLabel: `Show ${run.label} as a ghost`, onchange: () => { run.ghost = box.checked; page.show(); } });
      const save = element("button", { type: "button", className: "download", textContent: "↓", ariaLabel: `Save ${run.label}`, onclick: () => page.save(run.inputs) });
      return element("tr", {}, element("td", {}, element("label", {}, radio, swatch, run.label)), element("td", { textContent: run.end }),
        element("td", { className: "number", textContent: `${seconds(run.frames)} s` }), element("td", { className: "number", textContent: `${run.gold}/${gold}` }), element("td", {}, save, " ", box));
    }));
    if (!runs.length) find("runs").append(element("tr", {}, element("td", { colSpan: 5, className: "quiet", textContent: "No run yet: play it, or drop a recording onto the page." })));
    find("ghosts").hidden = runs.length < (live.on ? 1 : 2);
  }

  function allGhosts() {
    const wanted = find("ghosts").getAttribute("aria-pressed") !== "true";
    find("ghosts").setAttribute("aria-pressed", wanted);
    page.doc.runs.forEach((run) => { run.ghost = wanted; });
    list();
    page.show();
  }
  find("ghosts").onclick = allGhosts;
  const step = (frames) => { page.play(false); seek(Math.floor(Math.min(frame, length())) + frames); };

  return {
    get frame() { return live.on ? live.frame : Math.floor(frame); },
    get length() { return length(); },
    get inputs() { return live.on ? live.inputs : current()?.inputs ?? new Uint8Array(0); },
    get made() { return !live.on && current()?.made; }, // not a run of the gallery: the address holds it
    seek, choose, list,
    reset() { [chosen, frame, path] = [0, 0, undefined]; },
    enter() { list(); if (live.on) page.play(true); },
    show() {
      if (live.on) return live.show(page.doc.sim, ghostsAt);
      const now = Math.min(Math.floor(frame), length()), run = current() ? page.runOf(current()) : page.take;
      run.at(Math.min(now, run.length));
      const colour = COLOURS[chosen % COLOURS.length];
      if (find("path").checked && !path) { path = pathOf(run, run.length); run.at(Math.min(now, run.length)); }
      page.draw(run, {
        colour, paths: find("path").checked ? [{ points: path.slice(0, 2 * Math.min(now, run.length) + 2), colour: "#1f6fa8b0" }] : [],
        ghosts: ghostsAt(now),
      });
      page.readout(run, now, length());
    },
    tick(frames) {
      if (live.on) return live.tick(page.doc.sim, frames);
      frame += frames;
      if (frame < length()) return page.show();
      if (find("loop").checked && length()) { frame = frame > length() + RATE / 2 ? 0 : frame; return page.show(); } // half a second on the last frame
      frame = length();
      page.play(false);
    },
    again() { if (frame >= length()) frame = 0; },
    back: () => step(-1),
    forward: () => { if (live.on) { page.play(false); live.tick(page.doc.sim, 1); } else step(1); },
    key(event) {
      const keys = {
        ...(live.on ? { r: () => { live.restart(); page.play(true); } } : {}),
        " ": () => page.play(!page.playing), ArrowLeft: () => step(event.shiftKey ? -RATE : -1), ArrowRight: () => step(event.shiftKey ? RATE : 1),
        Home: () => step(-Infinity), End: () => step(Infinity), l: () => find("loop").click(), p: () => find("path").click(), g: allGhosts,
      };
      const action = keys[page.nameOf(event)] ?? (/^[1-9]$/.test(event.key) ? () => choose(Number(event.key) - 1) : undefined);
      action?.();
      return action !== undefined;
    },
  };
}

/** Play the level; the run that is made is `page.take`. */
function playMode(page) {
  let waiting = true, over = false, rewinding = 0; // since when the key is down
  const held = () => performance.now() - rewinding; // milliseconds

  function again() {
    page.take.reset();
    [waiting, over] = [true, false];
    page.say("");
    page.keep();
    page.play(true);
  }

  function end() {
    [waiting, over] = [false, true];
    page.keep();
    const { take } = page, won = take.state === "won", best = page.doc.runs[0];
    const time = seconds(take.frame), better = won && (!best || best.end !== "won" || take.frame < best.frames);
    page.add({ label: `your run ${page.doc.runs.filter((run) => run.own).length + 1}`, own: true, inputs: take.inputs.slice(0, take.frame) });
    page.say(won ? `Won in ${time} s${better ? ", the fastest run here" : ""}` : `${causeOf(take).replace("died", "Dead")} after ${time} s`,
      ["Again (R)", again], ["Watch", () => page.setMode("watch")], ["Edit as TAS", () => page.setMode("tas")], ["Save", () => page.save(take.inputs)]);
  }

  function back(frames) {
    if (!page.take.frame) return;
    page.take.at(Math.max(page.take.frame - frames, 0));
    [over, waiting, page.tapped] = [false, true, 0]; // it stands still until a key is held
    page.say("");
    page.keep();
    page.show();
  }

  return {
    made: true,
    get inputs() { return page.take.inputs.slice(0, page.take.frame); },
    get frame() { return page.take.frame; },
    get length() { return page.take.frame; },
    reset() { again(); },
    enter() {
      over = page.take.state !== "playing";
      waiting = !over;
      if (waiting) page.say(page.take.frame ? "Move to go on" : "Move to start");
      page.play(true);
    },
    /** Go on with a run from its end. */
    resume(inputs) {
      page.take.reset(inputs);
      page.take.at(inputs.length);
      this.enter();
      if (over) end();
    },
    show() {
      const best = find("ghost").checked ? page.doc.runs.find((run) => run.end === "won") ?? page.doc.runs.find((run) => !run.own) : undefined, ghosts = [];
      if (best) {
        const run = page.runOf(best);
        run.at(Math.min(page.take.frame, run.length));
        ghosts.push({ run, colour: COLOURS[1] });
      }
      page.draw(page.take, { colour: COLOURS[0], ghosts });
      page.readout(page.take, page.take.frame, page.take.frame, page.held());
    },
    tick(frames) {
      page.due = (page.due ?? 0) + frames;
      for (; page.due >= 1; page.due -= 1) {
        if (rewinding) { if (held() > 200) back(held() > 1000 ? 4 : 1); continue; }
        if (over) continue;
        if (waiting && !page.held()) continue;
        if (waiting) page.say("");
        waiting = false;
        page.take.step(page.held());
        page.tapped = 0; // a key that was let go before this frame
        if (page.take.frame % RATE === 0) page.keep();
        if (page.take.state !== "playing") end();
      }
      page.show();
    },
    again() { page.tapped = 0; },
    restart: again,
    hide() { waiting = !over; },
    back() {}, // rewind() has done it
    /** Go back by a frame, and on while it is held, after a second faster. */
    rewind(on) {
      if (on && !rewinding) back(1);
      rewinding = on ? rewinding || performance.now() : 0;
    },
    key(event) {
      const keys = {
        r: again, Enter: () => page.play(!page.playing), t: () => page.speed(find("speed").value === "0.25" ? 1 : 0.25),
        Backspace: () => this.rewind(true), g: () => find("ghost").click(), Escape: () => page.play(false),
      };
      const action = event.repeat ? undefined : keys[page.nameOf(event)];
      action?.();
      return action !== undefined || event.key === "Backspace";
    },
    release(event) { if (event.key === "Backspace") this.rewind(false); },
  };
}

/** Make a run frame by frame: inputs are changed anywhere, and what follows is played again. */
function tasMode(page) {
  const ROW = 28, WIDTH = 14, ROWS = [[4, "←"], [1, "jump"], [2, "→"]], MOST_UNDO = 200; // sizes in pixels
  let branches = [], undone = [], painting, path, held = 0;
  const roll = find("roll"), first = () => Math.max(page.take.frame - Math.floor(roll.clientWidth / WIDTH / 2), 0);

  /** Play other inputs, to the frame that is shown; they can be undone. */
  function take(inputs, frame = page.take.frame) {
    undone = [...undone, { inputs: page.take.inputs, frame: page.take.frame }].slice(-MOST_UNDO);
    set(inputs, frame);
  }

  function set(inputs, frame) {
    path = undefined;
    page.take.reset(inputs);
    page.take.at(Math.min(frame, inputs.length));
    page.keep();
    page.show();
  }

  function write(count) {
    const { take: run } = page, byte = held | page.held(), inputs = new Uint8Array(run.frame + count);
    inputs.set(run.inputs.subarray(0, run.frame));
    take(inputs.fill(byte, run.frame), inputs.length);
  }

  const seek = (frame) => { page.play(false); page.take.at(Math.min(Math.max(frame, 0), page.take.length)); page.show(); };

  function branch(inputs) {
    const run = page.take.level.run(inputs);
    run.at(run.length);
    branches.push({ label: `branch ${branches.length + 1}`, run, end: causeOf(run) || "under way" });
    list();
  }

  function keep() {
    branch(page.take.inputs);
    page.keep();
    page.show();
  }

  function list() {
    find("no-branches").hidden = branches.length > 0;
    find("branches").replaceChildren(...branches.map((branch, number) => element("tr", {},
      element("td", { textContent: branch.label }), element("td", { textContent: branch.end }), element("td", { className: "number", textContent: `${branch.run.length} frames` }),
      element("td", {}, element("button", { type: "button", textContent: "Take", onclick: () => take(branch.run.inputs) }), " ",
        element("button", { type: "button", textContent: "×", ariaLabel: `Remove ${branch.label}`, onclick: () => { branches.splice(number, 1)[0].run.free(); list(); page.keep(); page.show(); } })))));
  }

  /** Draw the inputs around the frame that is shown, which is under the line in the middle. */
  function drawRoll() {
    const scale = devicePixelRatio, width = roll.clientWidth, context = roll.getContext("2d"), style = getComputedStyle(document.body);
    const [line, quiet, accent, text] = ["--line", "--quiet", "--accent", "--text"].map((each) => style.getPropertyValue(each));
    Object.assign(roll, { width: width * scale, height: 4 * ROW * scale });
    context.scale(scale, scale);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const from = first(), { inputs, frame, length } = page.take;
    for (let place = 0; place * WIDTH < width; place++) {
      const at = from + place, x = place * WIDTH;
      if (at % 10 === 0) {
        context.fillStyle = quiet;
        context.fillText(at, x + 2, ROW / 2);
      }
      ROWS.forEach(([bit], row) => {
        context.fillStyle = at < length && inputs[at] & bit ? accent : line;
        context.globalAlpha = at < length ? 1 : 0.35;
        context.fillRect(x + 1, (row + 1) * ROW + 2, WIDTH - 2, ROW - 4);
      });
      context.globalAlpha = 1;
    }
    context.fillStyle = text;
    context.fillRect((frame - from) * WIDTH - 1, 0, 2, 4 * ROW);
    ROWS.forEach(([, name], row) => {
      context.fillStyle = style.getPropertyValue("--page");
      context.fillRect(1, (row + 1) * ROW + 5, context.measureText(name).width + 10, ROW - 10);
      context.fillStyle = text;
      context.fillText(name, 6, (row + 1.5) * ROW);
    });
  }

  function paint(event) {
    const box = roll.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / ROW) - 1;
    const at = (painting?.from ?? first()) + Math.floor((event.clientX - box.left) / WIDTH);
    if (event.type === "pointerdown") {
      page.play(false);
      roll.setPointerCapture(event.pointerId);
      painting = { from: first(), row, on: !(page.take.inputs[at] & ROWS[row]?.[0]), before: { inputs: page.take.inputs, frame: page.take.frame } };
    }
    if (!painting || at < 0) return;
    if (painting.row < 0) return seek(at);
    const inputs = page.take.inputs, bit = ROWS[painting.row][0], from = painting.last ?? at;
    for (let frame = Math.min(from, at); frame <= Math.min(Math.max(from, at), inputs.length - 1); frame++) {
      inputs[frame] = painting.on ? inputs[frame] | bit : inputs[frame] & ~bit;
    }
    painting.last = at;
    set(inputs, page.take.frame);
  }
  roll.onpointerdown = roll.onpointermove = paint;
  roll.onpointerup = roll.onpointercancel = () => {
    if (painting?.last !== undefined) undone.push(painting.before); // a stroke is one step
    painting = undefined;
    page.show();
  };
  roll.onwheel = (event) => { event.preventDefault(); seek(page.take.frame + Math.sign(event.deltaY || event.deltaX)); };

  function undo() {
    const last = undone.pop();
    if (last) set(last.inputs, last.frame);
  }

  for (const button of find("hold").children) {
    button.onclick = () => {
      held ^= Number(button.dataset.bit);
      button.setAttribute("aria-pressed", (held & Number(button.dataset.bit)) !== 0);
    };
  }
  find("write").onclick = () => write(1);
  find("write10").onclick = () => write(10);
  find("undo").onclick = undo;
  find("keep").onclick = keep;
  find("attract").onclick = () => page.download(files.writeAttract(page.doc.level, page.take.inputs), "");
  find("apply").onclick = () => page.attempt(() => take(files.readInputs(find("text").value), Infinity));
  return {
    get inputs() { return page.take.inputs; },
    get frame() { return page.take.frame; },
    get length() { return page.take.length; },
    get branches() { return branches.map(({ run }) => run.inputs); },
    made: true,
    seek, take, branch,
    reset() { [branches, undone, path] = [[], [], undefined]; list(); },
    enter() { path = undefined; list(); },
    show() {
      const { take: run } = page, ghosts = [];
      if (find("ghost").checked) {
        const others = branches.map((branch) => branch.run);
        if (!others.length && page.doc.runs[0]) others.push(page.runOf(page.doc.runs[0]));
        others.forEach((other, number) => { other.at(Math.min(run.frame, other.length)); ghosts.push({ run: other, colour: COLOURS[(number + 1) % COLOURS.length] }); });
      }
      const paths = [];
      if (find("path").checked) {
        const { frame } = run;
        path ??= pathOf(run, run.length);
        run.at(frame);
        paths.push({ points: path, colour: "#1f6fa8b0" });
      }
      page.draw(run, { colour: COLOURS[0], ghosts, paths });
      page.readout(run, run.frame, run.length);
      drawRoll();
      if (document.activeElement !== find("text")) find("text").value = files.writeInputs(run.inputs);
      find("undo").disabled = !undone.length;
    },
    tick(frames) {
      page.due = (page.due ?? 0) + frames;
      const whole = Math.floor(page.due);
      page.due -= whole;
      if (page.take.frame >= page.take.length) return page.play(false);
      if (whole) page.take.at(Math.min(page.take.frame + whole, page.take.length));
      page.show();
    },
    again() { if (page.take.frame >= page.take.length) page.take.at(0); },
    back: () => seek(page.take.frame - 1),
    forward: () => seek(page.take.frame + 1),
    key(event) {
      const by = event.shiftKey ? 10 : 1;
      if ((event.ctrlKey || event.metaKey) && event.key === "z") { undo(); return true; }
      const keys = {
        ".": () => write(1), ":": () => write(10), ">": () => write(10), "]": () => seek(page.take.frame + by), "[": () => seek(page.take.frame - by), "}": () => seek(page.take.frame + 10), "{": () => seek(page.take.frame - 10),
        Backspace: () => seek(page.take.frame - by), " ": () => page.play(!page.playing), k: keep, Home: () => seek(0), End: () => seek(Infinity),
        p: () => find("path").click(), g: () => find("ghost").click(),
      };
      const action = keys[page.nameOf(event)];
      action?.();
      return action !== undefined;
    },
  };
}
