"use strict";
// Check a recording or a submission: the simulator plays it again and its end is compared with what the file states.

/** Return {agrees, reason} of a recording in a file, as nclone_env.replay.verification has it. */
function verdictOf(found, page, sim) {
  const CELEBRATING = 8, DEAD = 6, { inputs } = found, states = [0], name = (state) => game.states[state];
  if (found.kind === "replay") {
    const got = files.hex(page.hashOf(sim, inputs));
    return got === found.hash ? { agrees: true, reason: "every frame matches" } : { agrees: false, reason: `expected trajectory hash ${found.hash}, got ${got}` };
  }
  const flag = inputs.findIndex((byte) => byte & files.SUICIDE), run = sim.run(inputs.length - 1 === flag ? [...inputs, 0] : inputs);
  for (let frame = 1; frame <= run.length; frame++) { run.at(frame); states.push(run.ninja.state); }
  run.free();
  const last = states.length - 1;
  if (found.kind === "nclone") {
    const won = states[last] === CELEBRATING;
    return { agrees: won === found.won, reason: won ? "reaches the exit" : "does not reach the exit" };
  }
  if (flag >= 0) {
    if (states[flag] >= DEAD) return { agrees: false, reason: `expected the ninja to be alive when the player gave up in frame ${flag}, got ${name(states[flag])}` };
    if (states[flag + 2] !== DEAD) return { agrees: false, reason: `expected death after the player gave up in frame ${flag}, got ${name(states[flag + 2])}` };
    return { agrees: true, reason: `alive until the player gave up in frame ${flag}, then dead` };
  }
  if (states[last] !== DEAD) return { agrees: false, reason: `expected death in the last frame, got ${name(states[last])}` };
  const died = states.indexOf(DEAD);
  return died < last ? { agrees: false, reason: `expected death in the last frame, got death ${last - died} frames earlier` } : { agrees: true, reason: "death in the last frame" };
}

function checkMode(page) {
  const MOST_SHOWN = 20;
  let working = 0;

  /** Add a line; `watch` opens the run that it is about. */
  function say(agrees, text, watch) {
    const line = element("li", { className: agrees ? "good" : "bad" }, element("span", { textContent: text }));
    if (watch) line.append(" ", element("button", { type: "button", textContent: "Watch", onclick: () => page.attempt(watch) }));
    find("verdicts").append(line);
    return line;
  }

  /** The inputs of an episode: its actions, each held for some frames, until it ends. */
  function inputsOf(actions, track) {
    const inputs = new Uint8Array(Math.min(actions.length * track.hold, track.frames));
    return inputs.map((_, frame) => game.inputs[actions[Math.floor(frame / track.hold)]]);
  }

  /** Return what is wrong with an episode, or nothing; `numbers` are those of its level, of itself and of its run's seed. */
  function fault(run, actions, track, end, numbers) {
    const inputs = inputsOf(actions, track);
    run.reset(inputs);
    run.at(inputs.length);
    let frames = inputs.length;
    if (run.state !== "playing") {
      let low = 0;
      while (low < frames) { const middle = (low + frames) >> 1; run.at(middle); if (run.state === "playing") low = middle + 1; else frames = middle; }
      run.at(frames);
    }
    const won = run.state === "won" ? 1 : 0, over = run.state !== "playing" || frames >= track.frames;
    if (!over || Math.ceil(frames / track.hold) !== actions.length) return "expected to end with its last action, got another end";
    if (end.frames !== frames || end.won !== won || end.whole !== 1) return `expected ${end.won ? "won" : "not won"} after ${end.frames} frames, got ${won ? "won" : "not won"} after ${frames}`;
    const mark = run.mark(actions, ...numbers), digits = (value) => value.toString(16).padStart(8, "0");
    return end.mark === mark ? undefined : `expected the mark ${digits(end.mark)}, got ${digits(mark)}`;
  }

  return {
    inputs: new Uint8Array(0), frame: 0, length: 0,
    reset() {}, enter() {}, seek() {},
    show() { page.draw(page.take); },
    tick() { page.play(false); },
    key: () => false,

    recording(name, found, sim) {
      const { agrees, reason } = verdictOf(found, page, sim);
      say(agrees, `${name}: ${agrees ? "verified" : "refused"}: ${reason}`);
      page.say(`${name}: ${agrees ? "verified: " : ""}${reason}`, ["OK", () => page.say("")]);
    },

    /** Play each episode of a submission again. */
    async submission(name, found) {
      const mine = ++working, track = gallery.tracks.find((each) => each.name === found.track);
      find("verdicts").replaceChildren();
      if (!track) return say(false, `${name}: track ${found.track}: its levels are not all in this gallery, which has those of ${gallery.tracks.map((each) => each.name).join(", ") || "none"}`);
      if (track.digest !== found.track_digest) return say(false, `${name}: track_digest: expected ${track.digest}, got ${found.track_digest}`);
      const progress = say(true, ""), faults = [];
      let played = 0, frames = 0;
      for (const [number, run] of found.runs.entries()) {
        for (const kind of ["sampled", "probable"]) {
          if (!run[kind]) continue;
          const { steps, actions, ends } = run[kind], each = kind === "sampled" ? track.attempts : 1;
          if (steps.length !== track.levels.length * each) { faults.push(say(false, `run ${number}: ${kind}: expected ${track.levels.length * each} episodes, got ${steps.length}`)); continue; }
          for (let level = 0, first = 0; level < track.levels.length; level++) {
            const data = await fetchLevel(track.levels[level]), sim = page.simulator.level(files.writeMap(data.level)), replayed = sim.run();
            for (let episode = level * each; episode < (level + 1) * each; first += steps[episode], episode++) {
              const own = actions.slice(first, first + steps[episode]), wrong = fault(replayed, own, track, ends[episode], [level, episode, run.seed]);
              played += 1;
              frames += ends[episode].frames;
              if (!wrong) continue;
              faults.push(wrong);
              if (faults.length <= MOST_SHOWN) say(false, `run ${number}: ${kind} episode ${episode} on ${data.label}: ${wrong}`, async () => {
                page.open({ ...await fetchLevel(track.levels[level]), inputs: [{ label: `${kind} episode ${episode}`, inputs: inputsOf(own, track) }] });
                page.setMode("watch");
                page.modes.watch.choose(page.doc.runs.length - 1);
                page.play(true);
              });
            }
            replayed.free();
            sim.free?.();
            progress.firstChild.textContent = `${name}: ${played.toLocaleString("en")} episodes replayed`;
            await new Promise((done) => setTimeout(done)); // the page stays alive
            if (mine !== working) return undefined;
          }
        }
      }
      progress.className = faults.length ? "bad" : "good";
      progress.firstChild.textContent = `${name}: ${faults.length ? `refused: ${faults.length.toLocaleString("en")} of` : "verified:"} ${played.toLocaleString("en")} episodes, ${frames.toLocaleString("en")} frames of ${found.title} on ${found.track}${faults.length ? " differ from the simulator" : " end as stated"}`;
      return undefined;
    },
  };
}
