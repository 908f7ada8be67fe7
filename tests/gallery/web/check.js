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

if (typeof module !== "undefined") {
  const [, , file, name] = process.argv, given = JSON.parse(require("fs").readFileSync(0));
  ({ check, promises })[name](require(file), given).then((found) => console.log(JSON.stringify(found)));
}
