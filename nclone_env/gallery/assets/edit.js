"use strict";
// Edit a level: tiles and entities by mouse, touch and keys. The simulator shows it, so what is seen is what is played.

function editMode(page) {
  const UNIT = 6, COLUMNS = 42, ROWS = 23, NINJA = 0, MOST_UNDO = 200, REACH = 12; // pixels
  const TOOLS = [["select", "Select", "Select and move (V)"], ["erase", "Erase", "Erase (X)"]];
  const tools = new Map();
  let level = files.newLevel(), history = [], at = -1, tool = "tile-1", chosen, stroke, sim, run, changed = false, turned = 0, cursor = [204, 204];

  const inside = ([x, y]) => x >= 0 && x < 264 && y >= 0 && y < 255;
  const copy = (from) => ({ ...from, tiles: from.tiles.slice(), records: from.records.map((record) => record.slice()) });
  const exits = () => level.records.filter(([kind]) => kind === files.EXIT).length;
  /** The switch of an exit or door, or the exit or door of a switch. */
  function partner(record) {
    const place = level.records.indexOf(record), [kind] = record;
    if (kind === files.EXIT) return level.records[place + exits()];
    if (kind === files.EXIT_SWITCH) return level.records[place - exits()];
    if (kind in files.DOOR_SWITCHES) return level.records[place + 1];
    return Object.values(files.DOOR_SWITCHES).includes(kind) ? level.records[place - 1] : undefined;
  }

  /** Keep the level for undo, and let the simulator show it. */
  function keep() {
    level.records = files.ordered(level.records);
    history = [...history.slice(0, at + 1), { ...copy(level), opened: false }].slice(-MOST_UNDO);
    at = history.length - 1;
    changed = true;
    page.keep();
    compile();
  }

  function compile() {
    page.scene.level = level;
    page.scene.drawWalls();
    if (changed) find("title").textContent = level.title.trim() || "Level without a title";
    try {
      if (sim) page.live.keep(sim, () => sim.replace(files.writeMap(level))); else [sim, run] = [page.simulator.level(files.writeMap(level))];
      run ??= sim.run();
      page.say("");
    } catch (error) { page.say(error.message); }
    page.show();
  }

  function move(by) {
    if (!history[at + by]) return;
    at += by;
    level = copy(history[at]);
    [chosen, changed] = [undefined, true];
    page.keep();
    [find("name").value, find("author").value] = [level.title, level.author];
    compile();
  }

  /** Take a level for editing. It takes the place of one that was opened only; after an edit it is a step, so that undo returns. */
  function take(from) {
    const tiles = (each) => each && files.hex(files.digest(each)), same = tiles(history[at]) === tiles(from);
    [level, chosen, changed] = [copy(from), undefined, false];
    if (!same) history = [...history.slice(0, history[at]?.opened ? at : at + 1), { ...copy(from), opened: true }].slice(-MOST_UNDO);
    if (!same) at = history.length - 1;
    [find("name").value, find("author").value] = [level.title, level.author];
  }

  // Tiles and entities

  const cellOf = ([x, y]) => [Math.floor(x / game.cell) - 1, Math.floor(y / game.cell) - 1];
  function setTile([column, row], tile) {
    if (column < 0 || column >= COLUMNS || row < 0 || row >= ROWS) return;
    level.tiles[COLUMNS * row + column] = tile;
  }
  const snapped = ([x, y]) => [Math.round(x / UNIT), Math.round(y / UNIT)];

  function nearest([x, y]) {
    let least = REACH, found;
    for (const record of level.records) {
      const gap = Math.hypot(record[1] * UNIT - x, record[2] * UNIT - y);
      if (gap <= least) [least, found] = [gap, record];
    }
    return found;
  }

  function place(kind, [x, y]) {
    if (!inside([x, y])) return;
    if (kind === NINJA) { Object.assign(level.records[0], [NINJA, x, y]); chosen = level.records[0]; return; }
    if (level.records.filter((record) => record[0] === kind).length >= game.kinds[kind].most) return;
    if (level.records.some((record) => record[0] === kind && record[1] === x && record[2] === y)) return;
    const { orientations, modes, switch: own } = game.kinds[kind];
    chosen = [kind, x, y, orientations ? turned % orientations : 0, 0];
    if (kind === files.EXIT) {
      const first = level.records.findIndex((record) => record[0] > files.EXIT), before = first < 0 ? level.records.length : first, count = exits();
      level.records.splice(before, 0, chosen);
      level.records.splice(before + 1 + count, 0, [own, Math.max(x - 16, 4), y, 0, 0]);
    } else level.records.push(chosen, ...(own === null ? [] : [[own, Math.max(x - 16, 4), y, 0, 0]]));
    if (!modes) chosen[4] = 0;
  }

  function remove(record) {
    if (!record || record === level.records[0]) return;
    const gone = [record, partner(record)];
    level.records = level.records.filter((each) => !gone.includes(each));
    if (gone.includes(chosen)) chosen = undefined;
  }

  function turn() {
    const { orientations, name } = chosen ? game.kinds[chosen[0]] : game.kinds[Number(tool.slice(7))] ?? {};
    if (!name || !orientations) return;
    const by = name.endsWith("door") ? 2 : 1;
    if (chosen) { chosen[3] = (chosen[3] + by) % orientations; keep(); }
    turned = (turned + by) % orientations;
  }
  function nextMode() {
    const modes = chosen ? game.kinds[chosen[0]].modes : 0;
    if (modes) { chosen[4] = (chosen[4] + 1) % modes; keep(); }
  }

  // Pointer: a stroke is from pressing to releasing, and one step of undo

  function draw(point, last) {
    if (stroke.erase) {
      const found = nearest(point), apart = !stroke.erased || Math.hypot(point[0] - stroke.erased[0], point[1] - stroke.erased[1]) > REACH;
      if (found && !stroke.tiles && apart) { // a stroke erases entities or tiles, whichever it met first
        remove(found);
        stroke.erased = point;
      } else if (!stroke.erased) {
        stroke.tiles = true;
        setTile(cellOf(point), 0);
      }
    } else if (tool === "select") {
      if (stroke.moved) { const to = snapped([point[0] - stroke.offset[0], point[1] - stroke.offset[1]]); if (inside(to)) [stroke.moved[1], stroke.moved[2]] = to; }
    } else if (tool.startsWith("tile-")) {
      const tile = Number(tool.slice(5)), [column, row] = cellOf(point);
      if (stroke.box) return;
      const [a, b] = cellOf(last), steps = Math.max(Math.abs(column - a), Math.abs(row - b), 1); // a fast pointer leaves no gaps
      for (let step = 0; step <= steps; step++) setTile([Math.round(a + (column - a) * step / steps), Math.round(b + (row - b) * step / steps)], tile);
    } else if (!stroke.placed) {
      place(Number(tool.slice(7)), snapped(point));
      stroke.placed = true;
    } else if (chosen) { const to = snapped(point); if (inside(to)) [chosen[1], chosen[2]] = to; }
  }

  function pointer(event) {
    if (document.body.dataset.mode !== "edit") return;
    const point = page.scene.world(event.clientX, event.clientY);
    if (event.type === "pointerdown") {
      event.preventDefault();
      find("canvas").focus({ preventScroll: true });
      find("canvas").setPointerCapture(event.pointerId);
      stroke = { first: point, last: point, erase: tool === "erase" || event.button === 2, box: event.shiftKey && tool.startsWith("tile-") };
      if (tool === "select" && !stroke.erase) {
        stroke.moved = chosen = nearest(point);
        if (chosen) stroke.offset = [point[0] - chosen[1] * UNIT, point[1] - chosen[2] * UNIT];
      }
    }
    if (!stroke) return;
    if (event.type !== "pointercancel") draw(point, stroke.last);
    stroke.last = point;
    if (event.type === "pointerup" || event.type === "pointercancel") {
      if (stroke.box) {
        const [[a, b], [c, d]] = [cellOf(stroke.first), cellOf(point)];
        for (let row = Math.min(b, d); row <= Math.max(b, d); row++) for (let column = Math.min(a, c); column <= Math.max(a, c); column++) setTile([column, row], Number(tool.slice(5)));
      }
      const picked = tool === "select" && !stroke.erase && (!stroke.moved || Math.hypot(point[0] - stroke.first[0], point[1] - stroke.first[1]) < 2);
      stroke = undefined;
      if (picked) page.show(); else keep();
    } else if (stroke.erase || tool.startsWith("entity-") || tool === "select") compile();
    else { page.scene.drawWalls(); page.show(); } // the simulator gets the tiles when the stroke ends
  }

  /** Do at the cursor what a click does. */
  function act(erase) {
    if (tool === "select" && !erase) { chosen = nearest(cursor); return page.show(); }
    stroke = { erase: erase || tool === "erase" };
    draw(cursor, cursor);
    stroke = undefined;
    return keep();
  }
  const canvas = find("canvas"), atCursor = () => document.activeElement === canvas && canvas.matches(":focus-visible");
  for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) canvas.addEventListener(kind, pointer);
  canvas.addEventListener("contextmenu", (event) => { if (document.body.dataset.mode === "edit") event.preventDefault(); });

  // Palettes

  function choose(name) {
    tool = name;
    turned = 0;
    if (name !== "select") chosen = undefined;
    for (const [each, button] of tools) {
      button.setAttribute("aria-checked", each === name);
      button.tabIndex = each === name ? 0 : -1;
    }
    page.show();
  }
  find("palette").onkeydown = (event) => { // as in every group of radio buttons
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key], names = [...tools.keys()];
    if (!by) return;
    event.stopPropagation();
    event.preventDefault();
    choose(names.at((names.indexOf(tool) + by) % names.length));
    tools.get(tool).focus();
  };

  function button(name, title, paint) {
    const made = element("button", { type: "button", title, ariaLabel: title, role: "radio", tabIndex: name === tool ? 0 : -1, onclick: () => choose(name) });
    made.setAttribute("aria-checked", name === tool);
    if (typeof paint === "string") made.textContent = paint;
    else {
      const picture = element("canvas", { width: 60, height: 60 }), context = picture.getContext("2d");
      context.scale(60 / 28, 60 / 28);
      paint(context);
      made.append(picture);
    }
    tools.set(name, made);
    return made;
  }

  function palettes() {
    if (tools.size) return;
    find("tools").append(...TOOLS.map(([name, text, title]) => button(name, title, text)));
    find("entities").append(...game.kinds.map((kind, number) => [kind, number]).filter(([kind]) => kind.pack && kind.icons[0] >= 0).map(([kind, number]) => (
      button(`entity-${number}`, kind.name.replaceAll("_", " "), (context) => page.scene.drawIcon(kind.icons[0], 14, 14, context)))));
    find("tiles").append(...game.tiles.map((tile, number) => button(`tile-${number}`, tile.name, (context) => {
      const path = new Path2D(), colours = game.themes[page.scene.theme];
      addTile(path, number, 2, 2);
      context.fillStyle = colours.air;
      context.fillRect(2, 2, 24, 24);
      context.fillStyle = colours.wall;
      context.fill(path);
    })));
  }

  function save() {
    const kind = find("export").value;
    find("export").value = "";
    const title = level.title || "level";
    if (kind === "map") page.download(files.writeMap(level), ".map", title);
    if (kind === "attract") page.download(files.writeAttract(level, page.take.inputs), "", title);
    if (kind === "pack") page.download(files.writePack([level]), ".txt", title);
    if (kind === "toml") page.download(new TextEncoder().encode(files.writeLevelText(level)), ".toml", title);
  }

  find("test").onclick = () => page.attempt(() => { page.setMode("play"); page.modes.play.restart(); });
  find("unedit").onclick = () => move(-1);
  find("reedit").onclick = () => move(1);
  find("turn").onclick = turn;
  find("switch-mode").onclick = nextMode;
  find("remove").onclick = () => { if (chosen) { remove(chosen); keep(); } };
  find("empty").onclick = () => {
    const tiles = new Uint8Array(COLUMNS * ROWS);
    level = files.newLevel({ title: "New level", tiles, records: [[NINJA, 20, 94, 0, 0], [files.EXIT, 150, 94, 0, 0], [files.EXIT_SWITCH, 90, 94, 0, 0]] });
    chosen = undefined;
    [find("name").value, find("author").value] = [level.title, level.author];
    keep();
  };
  find("export").onchange = () => page.attempt(save);
  for (const [id, field] of [["name", "title"], ["author", "author"]]) find(id).onchange = () => { level[field] = find(id).value; keep(); };

  return {
    get level() { return level; },
    get edited() { return changed ? level : undefined; },
    get inputs() { return page.take.inputs; },
    frame: 0, length: 0,
    reset() { take(page.doc.level); },
    /** The other modes show the level as it was edited. */
    leave() { if (changed) page.open({ level: copy(level) }); },
    enter() {
      palettes();
      compile();
      if (page.live.on) page.play(true);
    },
    show() {
      if (!run || document.body.dataset.mode !== "edit") return;
      if (page.live.on) page.live.show(sim);
      else page.draw(run);
      const { context } = page.scene, place = (record) => [record[1] * UNIT, record[2] * UNIT];
      context.lineWidth = 1;
      context.strokeStyle = "#8882";
      context.beginPath();
      for (let column = 1; column <= COLUMNS + 1; column++) { context.moveTo(24 * column, 24); context.lineTo(24 * column, 24 * (ROWS + 1)); }
      for (let row = 1; row <= ROWS + 1; row++) { context.moveTo(24, 24 * row); context.lineTo(24 * (COLUMNS + 1), 24 * row); }
      context.stroke();
      for (const record of level.records) {
        if (game.kinds[record[0]]?.switch == null || !partner(record)) continue;
        context.setLineDash([4, 4]);
        page.scene.drawLine([...place(record), ...place(partner(record))], { colour: "#1f6fa8a0", width: 1.5 });
        context.setLineDash([]);
      }
      if (chosen) {
        context.beginPath();
        context.arc(...place(chosen), 15, 0, 7);
        Object.assign(context, { strokeStyle: "#ff8000", lineWidth: 2.5 });
        context.stroke();
      }
      if (atCursor() && !chosen) {
        Object.assign(context, { strokeStyle: "#ff8000", lineWidth: 2 });
        context.strokeRect(cursor[0] - 12, cursor[1] - 12, 24, 24);
      }
      if (stroke?.box) {
        const [x, y] = stroke.first;
        Object.assign(context, { strokeStyle: "#ff8000", lineWidth: 2 });
        context.strokeRect(x, y, stroke.last[0] - x, stroke.last[1] - y);
      }
      const kind = chosen && game.kinds[chosen[0]];
      find("selected").textContent = kind ? [kind.name.replaceAll("_", " "), `${chosen[1]}, ${chosen[2]}`, kind.orientations ? `turn ${chosen[3]}` : "", kind.modes ? `mode ${chosen[4]}` : ""].filter(Boolean).join(" · ") : "";
      [find("unedit").disabled, find("reedit").disabled] = [!history[at - 1], !history[at + 1]];
    },
    tick(frames) { if (page.live.on && sim) page.live.tick(sim, frames); },
    seek() {},
    key(event) {
      const name = page.nameOf(event);
      if (event.ctrlKey || event.metaKey) { if (/^[zy]$/.test(name)) move(name === "z" && !event.shiftKey ? -1 : 1); return true; }
      const nudges = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (name in nudges) {
        const [x, y] = nudges[name], to = chosen && [chosen[1] + x, chosen[2] + y];
        if (chosen && inside(to)) { [chosen[1], chosen[2]] = to; keep(); }
        if (!chosen && atCursor()) {
          cursor = [Math.min(Math.max(cursor[0] + 24 * x, 36), 1020), Math.min(Math.max(cursor[1] + 24 * y, 36), 564)];
          page.show();
        }
        return Boolean(chosen) || atCursor();
      }
      if (atCursor() && (name === "Enter" || (!chosen && /^(Delete|Backspace)$/.test(name)))) {
        if (chosen && name === "Enter") chosen = undefined; else act(name !== "Enter");
        page.show();
        return true;
      }
      const keys = { ...(page.live.on ? { " ": () => page.play(!page.playing) } : {}), r: turn, m: nextMode, t: () => find("test").click(), v: () => choose("select"), x: () => choose("erase"), Escape: () => { chosen = undefined; page.show(); }, Delete: () => find("remove").click(), Backspace: () => find("remove").click() };
      keys[name]?.();
      return name in keys;
    },
  };
}
