"use strict";
// The simulator of nclone_env in a page, or in Node: its own kernels as WebAssembly, with the same bits.
//
//   const simulator = await Simulator.load(bytes);  // of play.wasm, or their base64; nothing is fetched
//   const level = simulator.level(map);             // bytes of a level file of the game; an Error says what is wrong
//   const run = level.run();                        // any number of runs of a level; run.free() gives back its memory
//   run.step(Simulator.RIGHT | Simulator.JUMP);     // one frame
//   run.at(0);                                      // any frame of its inputs, played again from the start
//   run.state, run.ninja, run.rows(), run.hash()    // what it is in; hash() equals that of Python's Session
//   run.observe(environment)                        // what a policy observes of it; policies.js has policies
//
// level.replace(map) puts another level in place of this one, as an editor does; its runs start again, without inputs.
// A run is {inputs, frame}: inputs are bytes, a frame each (jump 1, right 2, left 4, suicide 8), and the run is after
// `frame` of them. step() forgets those behind the frame. rows() are the numbers that scene.js draws, in steps of 1/256
// pixel; they are valid until the next call of any run. An environment is {observations, dtype, paths, max_frames,
// local_position, locals_size, locals_planes, outcome_frames}, as in Python; observe() returns an array for each of its
// observations by name, valid until the next call. The paths of a level are computed when they are first asked for.

const Simulator = (() => {
  const SECTION = "nclone_env", ALIGNED = 16, MOST_BLOCK = 8192, BIGGEST_INPUT = 15;
  const TILES = 184, TILE_COUNT = 966, COUNTS = 1150, TYPES = 40, RECORDS = 1230, RECORD = 5; // of level files
  const NINJA = 0, EXIT = 3, SWITCHES = { 6: 7, 8: 9 };
  const DEAD = 6, DYING = 7, CELEBRATING = 8;

  // Return the bytes of an array, of bytes or of their base64.
  function asBytes(source) {
    if (typeof source !== "string") return source instanceof Uint8Array ? source : new Uint8Array(source);
    return Uint8Array.from(atob(source), (character) => character.charCodeAt(0));
  }

  // Return {tiles, records} of a level file, by the rules of nclone_env.level.formats.map_bytes.
  function readMap(source, most) {
    const data = asBytes(source), end = data.length;
    if (end < RECORDS) throw new Error(`map: expected at least ${RECORDS} bytes, got ${end}`);
    const counts = Array.from({ length: TYPES }, (_, type) => data[COUNTS + 2 * type] | data[COUNTS + 2 * type + 1] << 8);
    for (const door in SWITCHES) counts[SWITCHES[door]] = counts[door];
    const whole = Math.floor((end - RECORDS) / RECORD), count = counts.reduce((sum, each) => sum + each, 0);
    if (count > whole) throw new Error(`map: expected ${count} records, as it counts, got ${whole}`);
    const types = Array.from({ length: whole }, (_, row) => data[RECORDS + RECORD * row]);
    const found = new Array(256).fill(0);
    for (const type of types.slice(0, count)) found[type] += 1;
    const counted = found.every((number, type) => number === (counts[type] ?? 0)) && (found[EXIT] > 0 || !types.includes(EXIT));
    if (!counted && (end - RECORDS) % RECORD) throw new Error(`map: expected whole records up to the end, got ${(end - RECORDS) % RECORD} bytes over`);
    const number = counted ? count : whole;
    checkRecords(types.slice(0, number), most);
    return { tiles: data.subarray(TILES, TILES + TILE_COUNT), records: data.subarray(RECORDS, RECORDS + RECORD * number), number };
  }

  // Refuse records without a meaning, as nclone_env.level.level.loading_fault does.
  function checkRecords(types, most) {
    const counts = new Array(256).fill(0);
    for (const type of types) counts[type] += 1;
    if (!types.length) throw new Error("map: expected a ninja, got no records");
    if (types.length > most[NINJA]) throw new Error(`map: expected at most ${most[NINJA]} records, got ${types.length}`);
    if (types[0] !== NINJA) throw new Error(`map: expected the ninja as the first record, got type ${types[0]}`);
    most.forEach((limit, type) => {
      if (counts[type] > limit) throw new Error(`map: expected at most ${limit} records of type ${type}, got ${counts[type]}`);
    });
    types.forEach((type, row) => {
      const partner = type === EXIT ? row + counts[EXIT] : type in SWITCHES ? row + 1 : row;
      if (partner >= types.length) throw new Error(`map: expected the switch of record ${row} in record ${partner}, got ${types.length} records`);
    });
  }

  // Memory of an instance, given out in pieces, which are taken again for pieces of the same size.
  class Memory {
    constructor(exports) {
      this.exports = exports;
      this.first = this.next = Math.ceil(exports.__heap_base.value / ALIGNED) * ALIGNED;
      this.freed = new Map();
      this.refresh();
    }
    refresh() {
      this.bytes = new Uint8Array(this.exports.memory.buffer);
      this.view = new DataView(this.exports.memory.buffer);
    }
    take(size) {
      // In steps of an eighth to a quarter, so that parts of edited levels fit where those of others were.
      const step = Math.max(ALIGNED, 2 ** (29 - Math.clz32(size))), whole = Math.max(Math.ceil(size / step), 1) * step;
      const at = this.freed.get(whole)?.pop() ?? this.next;
      if (at === this.next) {
        this.next += whole;
        if (this.next > this.bytes.length) {
          this.exports.memory.grow(Math.ceil((this.next - this.bytes.length) / 65536));
          this.refresh();
        }
      }
      this.bytes.fill(0, at, at + whole);
      return { at, whole };
    }
    give({ at, whole }) {
      if (!this.freed.has(whole)) this.freed.set(whole, []);
      this.freed.get(whole).push(at);
    }
  }

  // One level in the memory of an instance of its own.
  class Level {
    constructor(simulator, map) {
      this.layout = simulator.layout;
      this.code = new WebAssembly.Instance(simulator.module, {}).exports;
      this.memory = new Memory(this.code);
      this.result = this.memory.take(8);
      this.constants = {};
      for (const [name, { shape, rows, which }] of Object.entries(this.layout.constants)) {
        const array = this.constants[name] = this.array(shape, 2);
        const values = new Int16Array(this.memory.bytes.buffer, array.at, array.items);
        let place = 0;
        for (const row of which.map((number) => rows[number])) { // in runs: value, length, value, length ...
          for (let run = 0; run < row.length; run += 2) values.fill(row[run], place, place += row[run + 1]);
        }
      }
      this.pieces = [];
      this.seen = new Map();
      this.runs = new Set();
      this.replace(map);
    }

    // Compile another level into this one. Its runs start again, without inputs. After an Error it is as it was.
    replace(map) {
      const { tiles, records, number } = readMap(map, this.layout.most);
      for (const run of this.runs) run.release();
      this.pieces.forEach((piece) => this.memory.give(piece));
      this.pieces = [];
      const own = (shape, itemsize) => this.own(shape, itemsize);
      this.paths = {};
      this.seen.clear();
      this.arrays = this.room("levels", number, own);
      for (const name of Object.keys(this.layout.rooms.levels)) this.arrays[`out.${name}`] = this.arrays[`levels.${name}`];
      const given = { tiles: this.array([23, 42], 1), records: this.array([number, RECORD], 1) };
      this.memory.bytes.set(tiles, given.tiles.at);
      this.memory.bytes.set(records, given.records.at);
      this.call("compile", this.block("compile", { ...given, ...this.arrays }));
      this.memory.give(given.tiles);
      this.memory.give(given.records);
      const header = this.arrays["levels.header"].at;
      const counts = (name) => this.field("header", name, header);
      const types = this.types(counts("entity_count"));
      this.entities = types.length;
      this.exits = counts("exit_count");
      this.movers = counts("mover_count");
      this.trail = counts("trail_count");
      this.gold = counts("gold_count");
      this.spawn = { x: counts("spawn_x"), y: counts("spawn_y") };
      this.shooters = types.filter((type) => this.layout.shooting.includes(type)).length;
      this.sprites = counts("door_count") + types.length + types.filter((type) => type === this.layout.twice).length + 1;
      this.sheet = own([this.sprites, 3], 8);
      this.row = own([1, 3 * this.sprites + 5 * this.shooters + 4], 4);
      for (const run of this.runs) run.begin();
    }

    // Return a new run, at its start.
    run(inputs = []) { return new Run(this, inputs); }

    types(count) {
      const { at, itemsize } = this.arrays["levels.entities"];
      return Array.from({ length: count }, (_, slot) => this.field("entity", "type", at + itemsize * slot));
    }
    // An array that belongs to the present level, and is given back with it.
    own(shape, itemsize) {
      const array = this.array(shape, itemsize);
      this.pieces.push(array);
      return array;
    }
    // Arrays by their names in a room of the layout, with room for a number of things.
    room(name, number, make) {
      return Object.fromEntries(Object.entries(this.layout.rooms[name]).map(([part, { shape, each, itemsize }]) => (
        [`${name}.${part}`, make(shape.map((length, axis) => length + each[axis] * number), itemsize)])));
    }
    // Arrays of worlds of this level.
    worlds(group, count) {
      const length = { ninjas: count, rooms: count + 1, entity_states: count * this.entities + 1, movers: count * this.movers + 1, hints: count * this.movers + 1, trail: count * this.trail + 1 };
      return Object.fromEntries(Object.entries(this.layout.worlds).map(([name, { itemsize, inner }]) => [`${group}.${name}`, this.array([length[name], ...inner], itemsize)]));
    }

    // The paths of the level: "tiles", which doors do not block, or "doors".
    pathsOf(kind) {
      if (this.paths[kind]) return this.paths[kind];
      if (!this.exits) throw new Error("level: expected an exit, to which policies find a path, got none");
      const scratch = [], own = (shape, itemsize) => this.own(shape, itemsize);
      const make = (shape, itemsize) => { scratch.push(this.array(shape, itemsize)); return scratch.at(-1); };
      let paths;
      if (kind === "doors") {
        const given = { ...this.arrays, ...this.room("terrain", this.entities, make), order: make([this.entities + 2], 2), found: make([4], 8) };
        this.call("route", this.block("route", given));
        paths = this.room("paths", Number(this.memory.view.getBigInt64(given.found.at, true)), own);
        this.call("door_paths", this.block("door_paths", { ...given, ...paths }));
      } else {
        const given = { ...this.arrays };
        for (const [name, array] of Object.entries(this.room("tiles", this.entities, make))) given[name.replace("tiles", "scratch")] = array;
        paths = this.room("paths", 1 + this.exits, own);
        this.call("tile_paths", this.block("tile_paths", { ...given, ...paths }));
      }
      scratch.forEach((piece) => this.memory.give(piece));
      return (this.paths[kind] = paths);
    }

    // What observations of an environment, the same object each time, need besides a run: paths, rules, scratch, and arrays.
    eyesOf(environment) {
      if (this.seen.has(environment)) return this.seen.get(environment);
      const { observations, paths, locals_size: side, locals_planes: planes } = environment, { rooms, records, tried } = this.layout;
      const unknown = observations.find((name) => !(name in rooms.seen));
      if (unknown) throw new Error(`observations: expected some of ${Object.keys(rooms.seen).join(", ")}, got ${unknown}`);
      const eyes = { ...this.pathsOf(paths), ...this.worlds("tried", tried) };
      for (const [name, { shape, itemsize }] of Object.entries(this.layout.eyes)) eyes[name] = this.own(shape, itemsize);
      for (const name of Object.keys(this.layout.worlds)) this.pieces.push(eyes[`tried.${name}`]);
      for (const [name, [offset]] of Object.entries(records.rules)) this.memory.view.setInt32(eyes.rules.at + offset, Number(environment[name]), true);
      for (const name of observations) eyes[`seen.${name}`] = this.own(name === "locals" ? [1, planes, side, side] : rooms.seen[name].shape, rooms.seen[name].itemsize);
      this.call("make", this.block("make", { ...this.arrays, ...this.named(eyes, "tried", "worlds") }));
      this.seen.set(environment, eyes);
      return eyes;
    }
    // Arrays of a group, named as of another.
    named(arrays, from, to) {
      return Object.fromEntries(Object.entries(arrays).filter(([name]) => name.startsWith(`${from}.`)).map(([name, array]) => [`${to}${name.slice(from.length)}`, array]));
    }

    array(shape, itemsize) {
      const items = shape.reduce((product, length) => product * length, 1);
      return { ...this.memory.take(items * itemsize), shape, itemsize, items };
    }
    // Return the value of a field of a record at an address.
    field(record, name, at) {
      const [offset, kind] = this.layout.records[record][name];
      return this.memory.view[kind](at + offset, true);
    }
    // Write the parameters of an export, as nclone_env.jit.retarget describes them; return the block.
    block(name, values) {
      const block = this.memory.take(MOST_BLOCK), places = {};
      let slot = block.at;
      const put = (value) => { this.memory.view.setBigInt64(slot, BigInt(value), true); slot += 8; };
      for (const [path, ndim] of this.layout.exports[name]) {
        places[path] = slot;
        const value = values[path] ?? this.constants[path] ?? 0;
        if (!ndim) { put(value); continue; }
        const { items, itemsize, at, shape } = value || { items: 0, itemsize: 1, at: 0, shape: new Array(ndim).fill(0) };
        [0, 0, items, itemsize, at, ...shape].forEach(put);
        shape.forEach((_, axis) => put(shape.slice(axis + 1).reduce((product, length) => product * length, itemsize)));
      }
      return { ...block, places };
    }
    call(name, block, keep = false) {
      const status = this.code[name](block.at, this.result.at);
      if (!keep) this.memory.give(block);
      if (status) throw new Error(`${name}: status ${status}`);
    }
  }

  // Inputs from the start of a level, and the world after some of them.
  class Run {
    constructor(level, inputs) {
      this.level = level;
      this.room = 0;
      level.runs.add(this);
      this.begin(inputs);
    }

    begin(inputs = []) {
      const { level } = this, worlds = this.worlds = level.worlds("worlds", 1);
      this.blocks = {
        hash: level.block("hash", worlds),
        rows: level.block("rows", { ...level.arrays, ...worlds, sprites: level.sheet, rows: level.row }),
      };
      level.call("make", level.block("make", { ...level.arrays, ...worlds }));
      this.frame = this.length = 0;
      this.codes = undefined;
      this.reserve(1024);
      this.reset(inputs);
    }
    // Make room for inputs.
    reserve(length) {
      const { level } = this, before = this.codes;
      if (before && before.items >= length) return;
      let room = 1024;
      while (room < length) room *= 2;
      this.codes = level.array([room], 1);
      if (before) {
        level.memory.bytes.copyWithin(this.codes.at, before.at, before.at + this.length);
        level.memory.give(before);
        level.memory.give(this.blocks.play);
      }
      this.blocks.play = level.block("play", { ...level.arrays, ...this.worlds, inputs: this.codes, first: 0, last: 0 });
    }
    play(first, last) {
      const { level } = this, { view } = level.memory, { places } = this.blocks.play;
      view.setUint32(places.first, first, true);
      view.setUint32(places.last, last, true);
      level.call("play", this.blocks.play, true);
      this.frame = last;
    }

    // Go to the start, of other inputs if there are any.
    reset(inputs) {
      if (inputs !== undefined) {
        for (let frame = 0; frame < inputs.length; frame++) check(inputs[frame]);
        this.length = 0;
        this.reserve(inputs.length);
        this.level.memory.bytes.set(inputs, this.codes.at);
        this.length = inputs.length;
      }
      this.play(0, 0);
    }
    // Play one frame; inputs behind this frame are forgotten.
    step(input) {
      check(input);
      this.reserve(this.frame + 1);
      this.level.memory.bytes[this.codes.at + this.frame] = input;
      this.length = this.frame + 1;
      if (this.frame) this.play(this.frame, this.length);
      else this.advance();
    }
    advance() { // the first frame of a world that may have been moved at its start: not from the start again
      const { at } = this.codes, { bytes } = this.level.memory;
      this.reserve(2);
      const first = bytes[at], second = bytes[at + 1];
      bytes[at + 1] = first;
      this.play(1, 2);
      bytes[at + 1] = second;
      this.frame = 1;
    }
    // Go to the state after a number of the inputs.
    at(frame) {
      if (!(Number.isInteger(frame) && frame >= 0 && frame <= this.length)) throw new Error(`frame: expected a whole number from 0 to ${this.length}, got ${frame}`);
      if (frame !== this.frame) this.play(frame > this.frame ? this.frame : 0, frame);
      return this;
    }
    // Put the ninja at a place in pixels, at rest or with a velocity. The way back from there leads to frames without it.
    move(x, y, vx = 0, vy = 0) {
      const { view } = this.level.memory;
      Object.entries({ x, y, vx, vy }).forEach(([name, value]) => {
        view.setFloat64(this.worlds["worlds.ninjas"].at + this.level.layout.records.ninja[name][0], value, true);
      });
    }
    // Make this run what another run of the level is.
    copy(other) {
      const { level } = this;
      this.length = 0;
      this.reserve(other.length);
      level.memory.bytes.copyWithin(this.codes.at, other.codes.at, other.codes.at + other.length);
      [this.length, this.frame] = [other.length, other.frame];
      level.call("copy", level.block("copy", { ...level.named(other.worlds, "worlds", "source"), ...level.named(this.worlds, "worlds", "target") }));
    }

    // A copy of the inputs, Uint8Array.
    get inputs() { return this.level.memory.bytes.slice(this.codes.at, this.codes.at + this.length); }
    // The fields of the ninja's record: x, y, vx, vy, state, facing, gold, frame ...
    get ninja() {
      const read = (name) => this.level.field("ninja", name, this.worlds["worlds.ninjas"].at);
      return Object.fromEntries(Object.keys(this.level.layout.records.ninja).map((name) => [name, read(name)]));
    }
    // "playing", "won" or "died".
    get state() {
      const state = this.level.field("ninja", "state", this.worlds["worlds.ninjas"].at);
      return state === CELEBRATING ? "won" : state === DEAD || state === DYING ? "died" : "playing";
    }
    // The values of nclone_env.gallery's write_rows, Int32Array.
    rows() {
      const { level } = this, { row, memory } = level;
      memory.bytes.fill(0, row.at, row.at + row.items * row.itemsize);
      level.call("rows", this.blocks.rows, true);
      const values = new Int32Array(memory.bytes.buffer, row.at, row.items);
      values[row.items - 1] = this.frame ? memory.bytes[this.codes.at + this.frame - 1] : 0;
      return values;
    }
    // The hash of the world, a BigInt.
    hash() {
      this.level.call("hash", this.blocks.hash, true);
      return this.level.memory.view.getBigUint64(this.level.result.at, true);
    }
    // What a policy observes: name to Float32Array, of the values of float16 if that is the dtype, or Uint8Array of the grids;
    // valid until the next call.
    observe(environment) {
      const { level } = this, eyes = level.eyesOf(environment);
      level.call("observe", level.block("observe", { ...level.arrays, ...eyes, ...this.worlds }));
      const { buffer } = level.memory.bytes;
      return Object.fromEntries(environment.observations.map((name) => {
        const { at, items, itemsize } = eyes[`seen.${name}`];
        if (itemsize !== 4) return [name, new Uint8Array(buffer, at, items)];
        const values = new Float32Array(buffer, at, items);
        return [name, environment.dtype === "float16" ? values.map(half) : values];
      }));
    }
    // The mark of an episode of the benchmark that ends here: of its actions, the number of its level and of itself, and the run's key.
    mark(actions, level, number, key) {
      const array = this.level.array([Math.max(actions.length, 1)], 1);
      this.level.memory.bytes.set(actions, array.at);
      this.level.call("mark", this.level.block("mark", { ...this.worlds, actions: array, count: actions.length, level, number, key }));
      this.level.memory.give(array);
      return this.level.memory.view.getUint32(this.level.result.at, true);
    }
    release() {
      const { memory } = this.level;
      [...Object.values(this.worlds), ...Object.values(this.blocks), this.codes].forEach((piece) => memory.give(piece));
    }
    // Give back the memory; the run cannot be used any more.
    free() {
      if (this.level.runs.delete(this)) this.release();
    }
  }

  // Return a number from -1 to 1 in the precision of float16: the nearest one, of two the even one, as NumPy's.
  function half(value) {
    const size = Math.abs(value), unit = 2 ** (Math.max(Math.floor(Math.log2(size)), -14) - 10);
    const rounded = (size / unit + 2 ** 52 - 2 ** 52) * unit; // doubles of this size are whole numbers
    return 1 / value < 0 ? -rounded : rounded; // -0 stays -0
  }

  function check(input) {
    if (!(Number.isInteger(input) && input >= 0 && input <= BIGGEST_INPUT)) throw new Error(`input: expected a whole number from 0 to ${BIGGEST_INPUT}, got ${input}`);
  }

  class Loaded {
    constructor(module) {
      const [section] = WebAssembly.Module.customSections(module, SECTION);
      if (!section) throw new Error("module: expected play.wasm of nclone_env, got another one");
      this.module = module;
      this.layout = JSON.parse(new TextDecoder().decode(section));
      this.inputs = this.layout.inputs; // of the actions 0 to 5, a byte each
    }
    // Return a level of the bytes of a level file, or of their base64.
    level(map) { return new Level(this, map); }
  }

  return {
    JUMP: 1, RIGHT: 2, LEFT: 4, SUICIDE: 8,
    // Return the simulator of the bytes of play.wasm, or of their base64.
    load: async (source) => new Loaded(await WebAssembly.compile(asBytes(source))),
  };
})();
if (typeof module !== "undefined") module.exports = Simulator;
