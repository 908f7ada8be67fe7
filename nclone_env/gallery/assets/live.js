"use strict";
// A bundled policy plays live, in Watch and in Edit: on any level, also while that is changed, and with a ninja that is
// dragged about. An episode is an episode of its environment; the next one begins a second after its end.

function livePlayer(page) {
  const PAUSE = 60, REACH = { watch: 24, edit: 12 }, FINGER = 22, MOST_POINTS = 7200; // frames; pixels; pixels of the window; coordinates of the path
  let policy, run, chosen = "", episode = 0, byte = 0, over = 0, moved = false, held = false, dragged = false, points = [], due = 0;
  const canvas = find("canvas"), mode = () => document.body.dataset.mode;

  /** Return the policy of a name; its script is loaded when it is first asked for. */
  async function load(name) {
    if (!(name in gallery.policies)) await loadScript(`assets/policy-${name}.js`, "a bundled policy");
    const data = gallery.policies[name];
    return (data.made ??= Policies.load({ ...data, weights: await files.unpack(files.fromText(data.weights)) }));
  }

  function restart() {
    episode += 1;
    [byte, over, moved, points] = [0, 0, false, []];
    run.reset([]);
    page.say("");
  }

  /** Take a policy of a file, and let it play. */
  async function add(name, data) {
    const made = Policies.load(data), taken = name in gallery.policies || game.policies.some((each) => each.name === name);
    const own = taken ? `${name} (opened)` : name;
    if (!(own in gallery.policies)) find("policy").append(element("option", { value: own, textContent: own }));
    gallery.policies[own] = { title: "opened from a file", made };
    await choose(own);
  }

  /** Play on a level of the simulator. */
  function attach(sim) {
    if (run?.level === sim) return;
    run?.free();
    run = sim.run();
    restart();
  }

  function frame() {
    const { frame_skip: hold, max_frames: most } = policy.environment;
    if (held) return;
    if (over) { if (++over > PAUSE && find("loop").checked) restart(); return; }
    if (run.frame % hold === 0) {
      byte = page.simulator.inputs[policy.act(run, find("sampled").checked ? { seed: episode, row: 0, step: run.frame / hold } : undefined)];
    }
    run.step(byte);
    if (points.length < MOST_POINTS) points.push(run.ninja.x, run.ninja.y);
    if (run.state === "playing" && run.frame < most) return;
    over = 1;
    const words = run.state === "won" ? "Won" : run.state === "died" ? causeOf(run).replace("died", "Dead") : "Time is up";
    page.say(`${words} after ${seconds(run.frame)} s`, ["Again (R)", () => { restart(); page.play(true); }]);
  }

  /** Pixels from the ninja within which a pointer takes it. */
  function reach(event) {
    const [[left], [right]] = [page.scene.world(0, 0), page.scene.world(1, 0)];
    return Math.max(REACH[mode()], event.pointerType === "touch" ? FINGER * (right - left) : 0);
  }

  function drag(event) {
    const [x, y] = page.scene.world(event.clientX, event.clientY);
    if (event.type === "pointerdown") {
      dragged = false;
      if (!live.on || event.button || !(Math.hypot(x - run.ninja.x, y - run.ninja.y) <= reach(event))) return;
      canvas.setPointerCapture(event.pointerId);
      if (run.state !== "playing") restart();
      [held, over] = [true, 0];
      page.say("");
    } else if (!held) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    if (event.type !== "pointercancel") {
      run.move(Math.min(Math.max(x, 34), 1022), Math.min(Math.max(y, 34), 566)); // inside of the world
      moved = true;
      points = [];
    }
    if (event.type === "pointerup" || event.type === "pointercancel") {
      [held, dragged] = [false, true];
    }
    page.show();
  }
  for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) canvas.addEventListener(kind, drag, { capture: true });
  canvas.addEventListener("click", (event) => { if (dragged) event.stopImmediatePropagation(); }, { capture: true });

  async function choose(name, plays = true) {
    policy = name ? await load(name) : undefined;
    chosen = name;
    [live.on, find("policy").value] = [Boolean(name), name];
    find("live-title").textContent = name ? `${gallery.policies[name].title} · drag the ninja` : "";
    for (const id of ["sampled-label", "live-again"]) find(id).hidden = !live.on;
    document.body.toggleAttribute("data-live", live.on);
    if (run) restart();
    page.say("");
    page.modes.watch.list();
    page.address();
    page.play(live.on && plays);
  }

  for (const { name, title } of game.policies) find("policy").append(element("option", { value: name, textContent: name, title }));
  find("policy").onchange = () => page.attempt(() => choose(find("policy").value));
  find("sampled").onchange = () => { restart(); page.play(true); };
  find("live-again").onclick = () => { restart(); page.play(true); };

  const live = {
    on: false, choose, attach, restart, add,
    get name() { return chosen; },
    get bundled() { return game.policies.some(({ name }) => name === chosen); },
    get run() { return run; },
    get moved() { return moved; },
    get frame() { return moved ? 0 : run.frame; },
    get inputs() { return moved ? new Uint8Array(0) : run.inputs; },

    /** Change a level of the simulator below the ninja, which stays where it is. */
    keep(sim, change) {
      const stays = live.on && run?.level === sim && run.state === "playing" && run.frame > 0, { x, y, vx, vy } = stays ? run.ninja : {};
      change();
      if (!stays) return;
      run.move(x, y, vx, vy);
      [byte, over, moved, points] = [0, 0, true, []];
    },

    show(sim, ghostsAt = () => []) {
      attach(sim);
      page.draw(run, { ghosts: ghostsAt(run.frame), paths: find("path").checked && mode() === "watch" ? [{ points, colour: "#1f6fa8b0" }] : [] });
      page.readout(run, run.frame, run.frame, byte);
    },

    tick(sim, frames) {
      attach(sim);
      try {
        for (due += frames; due >= 1; due -= 1) frame();
      } catch (error) { // a level without an exit: it may get one
        due = 0;
        page.say(error.message);
      }
      page.show();
    },
  };
  return live;
}
