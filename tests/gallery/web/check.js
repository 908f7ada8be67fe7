"use strict";
// Play cases in the module and compare with what Python has recorded; in a page, and in Node from stdin to stdout.

function bytesOf(text) { return Uint8Array.from(atob(text), (character) => character.charCodeAt(0)); }

// Return {frames, faults}: frames compared, and of each case that differs its name and first frame.
async function check(simulators, { module: code, cases, every }) {
  const simulator = await simulators.load(code), faults = [];
  let frames = 0, level;
  for (const { name, map, inputs, hashes, rows } of cases) {
    const codes = bytesOf(inputs), wanted = new BigUint64Array(bytesOf(hashes).buffer), shown = new Int32Array(bytesOf(rows).buffer);
    if (level) level.replace(map);
    else level = simulator.level(map);
    const run = level.run();
    let wrong = -1, place = 0;
    for (let frame = 0; frame < codes.length && wrong < 0; frame++) {
      run.step(codes[frame]);
      frames += 1;
      if (run.hash() !== wanted[frame]) wrong = frame;
      if (frame % every === 0) for (const value of run.rows()) if (value !== shown[place++] && wrong < 0) wrong = frame;
    }
    if (wrong >= 0 || place !== shown.length) faults.push([name, wrong]);
    run.free();
  }
  return { frames, faults };
}

// What the face of the simulator promises; returns the promises that are broken.
async function promises(simulators, { module: code, map, other, broken, inputs }) {
  const simulator = await simulators.load(code), broke = [];
  const holds = (what, value) => { if (!value) broke.push(what); };
  const refuses = (what, call, text) => {
    try { call(); holds(`${what}: no error`, false); } catch (error) { holds(`${what}: ${error.message}`, text.test(error.message)); }
  };
  holds("imports nothing", WebAssembly.Module.imports(simulator.module).length === 0);
  const level = simulator.level(map), run = level.run(inputs), hashes = [run.hash()];
  for (let frame = 1; frame <= inputs.length; frame++) hashes.push(run.at(frame).hash());
  for (const frame of [inputs.length, 0, 17, 16, 40, 40]) holds(`at(${frame})`, run.at(frame).hash() === hashes[frame] && run.frame === frame);
  const ghost = level.run();
  ghost.copy(run);
  holds("a copy is equal", ghost.hash() === run.hash() && String(ghost.inputs) === String(run.inputs));
  ghost.step(1);
  holds("a copy is its own", ghost.length === 41 && run.length === inputs.length && run.hash() === hashes[40]);
  run.step(inputs[40]);
  holds("a step forgets what is behind it", run.length === 41 && run.hash() === hashes[41]);
  const long = new Uint8Array(5000).fill(2);
  ghost.reset(long);
  holds("more inputs than there was room for", String(ghost.at(5000).inputs) === String(long) && run.hash() === hashes[41]);
  ghost.reset();
  holds("reset keeps the inputs", ghost.length === 5000 && ghost.hash() === hashes[0]);
  ghost.move(300, 200);
  holds("moved", ghost.ninja.x === 300 && ghost.ninja.y === 200 && ghost.ninja.vx === 0);
  ghost.step(0);
  holds("moved at the start and played", Math.abs(ghost.ninja.x - 300) < 5 && ghost.frame === 1);
  const size = level.memory.bytes.length, next = level.memory.next;
  for (let count = 0; count < 200; count++) {
    level.replace(count % 2 ? map : other);
    level.run(inputs).free();
  }
  holds("memory does not grow", level.memory.bytes.length === size || level.memory.next - next < 1 << 20);
  holds("runs start again", run.frame === 0 && run.length === 0 && run.hash() === hashes[0]);
  run.reset(inputs);
  holds("and play", run.at(inputs.length).hash() === hashes[inputs.length]);
  for (const [data, text] of broken) refuses("a broken map", () => level.replace(data), new RegExp(text));
  holds("a broken map changes nothing", run.hash() === hashes[inputs.length]);
  refuses("inputs", () => run.step(16), /^input: expected a whole number from 0 to 15, got 16$/);
  refuses("frames", () => run.at(inputs.length + 1), /^frame: expected a whole number from 0 to \d+, got \d+$/);
  return broke;
}

// Play cases and let a policy observe and act every few frames; returns {states, faults}: of each case that differs its
// name, the number of the state, and what differs. One that forgets sees another run in each state.
async function acts(simulators, { module: code, policies: file, policy: data, cases, seed, forgets }) {
  const simulator = await simulators.load(code), policy = require(file).load(data), { frame_skip: hold } = policy.environment, faults = [];
  let states = 0, level;
  for (const [row, { name, map, inputs, seen, probable, sampled }] of cases.entries()) {
    if (level) level.replace(map);
    else level = simulator.level(map);
    const run = level.run(bytesOf(inputs)), wanted = Object.fromEntries(Object.entries(seen).map(([each, text]) => [each, bytesOf(text)]));
    let wrong;
    for (let step = 0; step < probable.length && !wrong; step++) {
      run.at(step * hold);
      for (const [each, values] of Object.entries(policy.observe(run))) {
        const got = new Uint8Array(values.buffer, values.byteOffset, values.byteLength), from = step * got.length;
        if (got.some((byte, at) => byte !== wanted[each][from + at])) wrong = each;
      }
      const seenAs = forgets ? Object.create(run) : run;
      if (policy.act(seenAs) !== probable[step]) wrong ??= "most probable action";
      if (policy.act(seenAs, { seed, row, step }) !== sampled[step]) wrong ??= "sampled action";
      if (wrong) faults.push([name, step, wrong]);
      states += 1;
    }
    run.free();
  }
  return { states, faults };
}

// Return the errors of a policy on a level without an exit, and of an observation that pages do not have; and whether the
// first is gone once the level has one; and of a network with other inputs.
async function refusals(simulators, { module: code, policies: file, policy: data, without, map }) {
  const simulator = await simulators.load(code), policy = require(file).load(data), level = simulator.level(without), run = level.run();
  const text = (call) => { try { call(); return ""; } catch (error) { return error.message; } };
  const first = text(() => policy.act(run));
  level.replace(map);
  const other = require(file).load({ ...data, inputs: [...data.inputs, "game_state"] });
  return [first, text(() => run.observe({ ...policy.environment, observations: ["player_frame"] })), text(() => policy.act(run)), text(() => other.act(run))];
}

// Return of the paths of each level, of both kinds, a digest of so many bytes of arrays, and the length from the start.
async function paths(simulators, { module: code, maps, sizes }) {
  const simulator = await simulators.load(code), { createHash } = require("crypto"), level = simulator.level(maps[0]);
  return maps.map((map, place) => {
    level.replace(map);
    return ["tiles", "doors"].map((kind, number) => {
      const found = level.pathsOf(kind), { bytes } = level.memory, hash = createHash("sha256");
      for (const [name, size] of Object.entries(sizes[place][number])) {
        const { at } = found[`paths.${name}`];
        hash.update(bytes.subarray(at, at + size));
      }
      return [hash.digest("hex"), level.field("header", "start_distance", found["paths.header"].at)];
    });
  });
}

// Return the marks of episodes.
async function marks(simulators, { module: code, episodes }) {
  const simulator = await simulators.load(code);
  return episodes.map(({ map, inputs, actions, numbers }) => {
    const run = simulator.level(map).run(bytesOf(inputs)), before = run.at(run.length).hash(), mark = run.mark(bytesOf(actions), ...numbers);
    return run.hash() === before ? mark : "the world has changed";
  });
}

// Hours of a policy on levels that change, with a ninja that is moved; returns the bytes of memory after each part.
async function hours(simulators, { module: code, policies: file, policy: data, maps, parts, frames }) {
  const simulator = await simulators.load(code), policy = require(file).load(data), level = simulator.level(maps[0]), run = level.run(), sizes = [];
  for (let part = 0; part < parts; part++) {
    level.replace(maps[part % maps.length]);
    for (let frame = 0, byte = 0; frame < frames; frame++) {
      if (run.state !== "playing" || run.frame === policy.environment.max_frames) run.reset([]);
      if (run.frame % policy.environment.frame_skip === 0) byte = simulator.inputs[policy.act(run, { seed: part, row: 0, step: frame })];
      if (frame % 500 === 499) run.move(300, 300);
      run.step(byte);
    }
    sizes.push(level.memory.next);
  }
  return sizes;
}

if (typeof module !== "undefined") {
  const [, , file, name] = process.argv, given = JSON.parse(require("fs").readFileSync(0));
  ({ check, promises, acts, hours, marks, refusals, paths })[name](require(file), given).then((found) => console.log(JSON.stringify(found)));
}
