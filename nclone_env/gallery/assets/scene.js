"use strict";
// Drawing: walls, beams and sprites of one frame, as the pictures of the package show them; and what is loaded for it.

const dark = matchMedia("(prefers-color-scheme: dark)"), sheets = {};

/** Load the sprites of the theme that the system asks for. */
async function loadSheet() {
  const theme = dark.matches ? "dark" : "light";
  if (sheets[theme]) return;
  const loaded = new Image();
  loaded.src = theme === "dark" ? "assets/sprites-dark.webp" : "assets/sprites.webp";
  await loaded.decode();
  sheets[theme] = loaded;
}

/** The theme that can be drawn: the other one until its sprites are loaded. */
function themeNow() { return sheets[dark.matches ? "dark" : "light"] ? (dark.matches ? "dark" : "light") : Object.keys(sheets)[0]; }

/** Load a script of the gallery, which holds some thing. */
function loadScript(src, what) {
  return new Promise((done, failed) => {
    document.head.append(Object.assign(document.createElement("script"), { src, onload: done, onerror: () => failed(new Error(`${src}: expected ${what}, got none`)) }));
  });
}

/** Return the data of a level of the gallery, from the script of its name. */
async function fetchLevel(name) {
  if (!(name in gallery.data)) await loadScript(`levels/${name}.js`, "a level of the gallery");
  const data = gallery.data[name];
  const runs = await Promise.all(data.runs.map(async (run) => ({ ...run, inputs: await files.unpack(files.fromText(run.inputs)) })));
  return { ...data, name, level: files.readMap(await files.unpack(files.fromText(data.map), 1 << 20)), runs };
}

/** Return x, y of the ninja after each frame, from the start to a frame. */
function pathOf(run, last) {
  const points = [];
  for (let frame = 0; frame <= last; frame++) { run.at(frame); points.push(run.ninja.x, run.ninja.y); }
  return points;
}

/** The part of the world that a level uses, whole cells with one of wall around it, and how much it is enlarged. */
function usedArea(level) {
  const { COLUMNS, ROWS } = files, { cell, unit } = game, used = [];
  level.tiles.forEach((tile, place) => { if (tile !== 1) used.push([place % COLUMNS + 1, Math.floor(place / COLUMNS) + 1]); });
  for (const [, x, y] of level.records) used.push([Math.floor(x * unit / cell), Math.floor(y * unit / cell)]);
  const inside = used.filter(([column, row]) => column < COLUMNS + 2 && row < ROWS + 2);
  if (!inside.length) return wholeWorld();
  const span = (axis, most) => {
    const places = inside.map((each) => each[axis]);
    const first = Math.max(places.reduce((a, b) => Math.min(a, b)) - 1, 0), last = Math.min(places.reduce((a, b) => Math.max(a, b)) + 2, most);
    return [first * cell, (last - first) * cell];
  };
  const [left, width] = span(0, COLUMNS + 2), [top, height] = span(1, ROWS + 2);
  return { left, top, width, height };
}

function wholeWorld() { return { left: 0, top: 0, width: (files.COLUMNS + 2) * game.cell, height: (files.ROWS + 2) * game.cell }; }

/** Add the outline of a tile to a path. */
function addTile(path, tile, x, y) {
  const outline = (game.tiles[tile] ?? game.tiles[0]).outline;
  for (let at = 0; at < outline.length; at += 2) path[at ? "lineTo" : "moveTo"](x + outline[at], y + outline[at + 1]);
  if (outline.length) path.closePath();
}

class Scene {
  constructor(canvas) {
    Object.assign(this, { canvas, theme: "light", walls: document.createElement("canvas") });
    this.context = canvas.getContext("2d");
  }

  /** Show an area of a level with so many pixels of the canvas per pixel of the world. */
  setLevel(level, area, scale, theme) {
    Object.assign(this, { level, area, scale, theme });
    this.canvas.width = Math.round(area.width * scale);
    this.canvas.height = Math.round(area.height * scale);
    this.place(this.context);
    this.context.imageSmoothingQuality = "high";
    this.drawWalls();
  }

  place(context) {
    context.setTransform(this.scale, 0, 0, this.scale, -this.area.left * this.scale, -this.area.top * this.scale);
  }

  /** Draw the walls: their insides, and within two pixels of the air a line. */
  drawWalls() {
    const { cell } = game, colours = game.themes[this.theme], { left, top, width, height } = this.area;
    const columns = files.COLUMNS + 2, rows = files.ROWS + 2;
    const at = (column, row) => (column < 1 || row < 1 || column >= columns - 1 || row >= rows - 1 ? 1 : this.level.tiles[(row - 1) * files.COLUMNS + column - 1]);
    const solid = new Path2D(), edges = new Path2D();
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const tile = at(column, row), x = column * cell, y = row * cell;
        if (tile === 1) solid.rect(x, y, cell, cell); else addTile(solid, tile, x, y);
        for (const [ax, ay, bx, by] of Scene.sides(tile).inner) { edges.moveTo(x + ax, y + ay); edges.lineTo(x + bx, y + by); }
        if (column + 1 < columns) for (const [a, b] of Scene.uncovered(tile, "right", at(column + 1, row), "left")) { edges.moveTo(x + cell, y + a); edges.lineTo(x + cell, y + b); }
        if (row + 1 < rows) for (const [a, b] of Scene.uncovered(tile, "bottom", at(column, row + 1), "top")) { edges.moveTo(x + a, y + cell); edges.lineTo(x + b, y + cell); }
      }
    }
    Object.assign(this.walls, { width: this.canvas.width, height: this.canvas.height });
    const context = this.walls.getContext("2d");
    this.place(context);
    context.fillStyle = colours.air;
    context.fillRect(left, top, width, height);
    context.fillStyle = colours.wall;
    context.fill(solid);
    context.save();
    context.clip(solid);
    Object.assign(context, { strokeStyle: colours.edge, lineWidth: 4, lineCap: "round" });
    context.stroke(edges);
    context.restore();
  }

  /** The edges of a tile inside its cell, and what of each side of the cell it covers, [from, to]. */
  static sides(tile) {
    const known = (Scene.known ??= new Map());
    if (known.has(tile)) return known.get(tile);
    const { outline } = game.tiles[tile] ?? game.tiles[0], found = { inner: [], left: [0, 0], right: [0, 0], top: [0, 0], bottom: [0, 0] };
    for (let each = 0; each < outline.length; each += 2) {
      const [ax, ay, bx, by] = [0, 1, 2, 3].map((step) => outline[(each + step) % outline.length]);
      const side = ax === bx && ax % game.cell === 0 ? (ax ? "right" : "left") : ay === by && ay % game.cell === 0 ? (ay ? "bottom" : "top") : "";
      if (!side) found.inner.push([ax, ay, bx, by]);
      else found[side] = side === "left" || side === "right" ? [Math.min(ay, by), Math.max(ay, by)] : [Math.min(ax, bx), Math.max(ax, bx)];
    }
    known.set(tile, found);
    return found;
  }

  /** The parts of a side between two cells that one of them alone covers. */
  static uncovered(one, side, two, other) {
    const [a, b] = Scene.sides(one)[side], [c, d] = Scene.sides(two)[other];
    if (a === b || c === d) return a === b && c === d ? [] : [a === b ? [c, d] : [a, b]];
    return [[Math.min(a, c), Math.max(a, c)], [Math.min(b, d), Math.max(b, d)]].filter(([from, to]) => from < to);
  }

  /** Draw a frame: the rows of a run on the level, the ninjas of others {row, colour}, and paths {points, colour}. */
  draw(row, { shooters, colour = "#fff", ghosts = [], paths = [] }) {
    const { context } = this, beams = row.length - 4 - 5 * shooters, ninja = beams - 3;
    context.save();
    context.resetTransform();
    context.drawImage(this.walls, 0, 0);
    context.restore();
    for (let at = beams; at < row.length - 4; at += 5) {
      const beam = game.beams[row[at]];
      if (beam) this.drawLine([row[at + 1], row[at + 2], row[at + 3], row[at + 4]].map((value) => value / game.steps), beam);
    }
    for (let at = 0; at < ninja; at += 3) this.drawSprite(row, at);
    for (const path of paths) this.drawLine(path.points, { width: 1.5, ...path });
    for (const ghost of ghosts) {
      context.globalAlpha = 0.55;
      this.drawSprite(ghost.row, ninja);
      context.globalAlpha = 1;
      this.drawMark(ghost.row, ninja, ghost.colour);
    }
    this.drawSprite(row, ninja);
    if (ghosts.length) this.drawMark(row, ninja, colour);
  }

  drawSprite(row, at) { if (row[at] >= 0) this.drawIcon(row[at], row[at + 1] / game.steps, row[at + 2] / game.steps); }

  /** Draw a sprite of the sheet around a place of the world. */
  drawIcon(number, x, y, context = this.context) {
    const { side, sprite, columns } = game.sheet;
    context.drawImage(sheets[this.theme], number % columns * side, Math.floor(number / columns) * side, side, side, x - sprite / 2, y - sprite / 2, sprite, sprite);
  }

  /** Draw a line through points x, y, x, y ... */
  drawLine(points, { colour, width }) {
    const { context } = this;
    context.beginPath();
    for (let at = 0; at < points.length; at += 2) context.lineTo(points[at], points[at + 1]);
    Object.assign(context, { strokeStyle: colour, lineWidth: width, lineJoin: "round", lineCap: "butt" });
    context.stroke();
  }

  /** Draw a small triangle of a run's colour above its ninja. */
  drawMark(row, ninja, colour) {
    const { context } = this, [x, y] = [row[ninja + 1] / game.steps, row[ninja + 2] / game.steps - 13];
    context.beginPath();
    context.moveTo(x - 4, y - 6);
    context.lineTo(x + 4, y - 6);
    context.lineTo(x, y);
    context.closePath();
    Object.assign(context, { fillStyle: colour, strokeStyle: "#fff", lineWidth: 0.75 });
    context.fill();
    context.stroke();
  }

  /** The place of the world below a place of the window. */
  world(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect(), fit = Math.min(box.width / this.area.width, box.height / this.area.height);
    return [(clientX - box.left - (box.width - fit * this.area.width) / 2) / fit + this.area.left,
      (clientY - box.top - (box.height - fit * this.area.height) / 2) / fit + this.area.top];
  }
}
