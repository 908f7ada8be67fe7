"use strict";
// The policies of nclone_env in a page, or in Node: networks that observe a run of simulator.js and act.
//
//   const policy = Policies.load(data);             // of policies/NAME.js: environment, layers, and weights, float32
//   policy.observe(run);                            // what it sees, by name, as the package's kernels write it
//   policy.logits(observations);                    // of the six actions at the start of an episode, Float64Array
//   policy.act(run);                                // the most probable action, 0 to 5
//   policy.act(run, { seed: 0, row: 0, step: 7 });  // a sampled one: that of Python for the same three numbers
//   run.step(simulator.inputs[action]);             // held for policy.environment.frame_skip frames
//
// A policy with a memory or stacks of observations keeps those of each run in act(). They are of the same episode if the run
// is where it was, or frame_skip frames further on; in any other frame an episode begins.
//
// Sums are in double precision, so logits differ from those of Python, in single, in the seventh digit.

const Policies = (() => {
  const GOLDEN = 0x9E3779B97F4A7C15n, FACTORS = [[30n, 0xBF58476D1CE4E5B9n], [27n, 0x94D049BB133111EBn]], SOLID = 255;

  // A step of SplitMix64, as nclone_env.sim.state.splitmix.
  function splitmix(value) {
    let mixed = BigInt.asUintN(64, value + GOLDEN);
    for (const [shift, factor] of FACTORS) mixed = BigInt.asUintN(64, (mixed ^ mixed >> shift) * factor);
    return mixed ^ mixed >> 31n;
  }

  // A number in [0, 1), a multiple of 2 ** -24, that depends on nothing but the three numbers.
  function uniform(seed, row, step) {
    return Number(splitmix(splitmix(splitmix(splitmix(BigInt(seed)) ^ BigInt(row)) ^ BigInt(step))) >> 40n) / 2 ** 24;
  }

  // The outputs of a layer {weight, bias}, rectified unless it is the last.
  function layer({ weight, bias }, inputs, isLast) {
    const outputs = new Float64Array(bias.length), width = inputs.length;
    if (weight.length !== bias.length * width) throw new Error(`layer: expected ${weight.length / bias.length} inputs, got ${width}`);
    for (let unit = 0; unit < bias.length; unit++) {
      let sum = bias[unit];
      for (let place = 0, at = unit * width; place < width; place++) sum += weight[at + place] * inputs[place];
      outputs[unit] = isLast || sum > 0 ? sum : 0;
    }
    return outputs;
  }

  // The state after a gated recurrent unit, of two layers {weight, bias} for its features and for the state before.
  function recur([projection, recurrence], features, before) {
    const projected = layer(projection, features, true), recurrent = layer(recurrence, before, true), size = before.length;
    const gate = (place) => 1 / (1 + Math.exp(-projected[place] - recurrent[place]));
    return before.map((value, unit) => {
      const keep = gate(size + unit), fresh = Math.tanh(projected[2 * size + unit] + gate(unit) * recurrent[2 * size + unit]);
      return (1 - keep) * fresh + keep * value;
    });
  }

  // Arrays of numbers one behind the other.
  function joined(parts) {
    const values = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { values.set(part, at); at += part.length; }
    return values;
  }

  class Policy {
    #kept = new WeakMap(); // of each run: the frame of its last decision, and what the policy remembered before and after it

    constructor({ environment, inputs, layers, encoders, recurrence, weights }) {
      const bytes = typeof weights === "string" ? Uint8Array.from(atob(weights), (character) => character.charCodeAt(0)) : weights;
      const values = new Float32Array(bytes.slice().buffer);
      const parameters = ([weight, bias, units, width]) => ({ weight: values.subarray(weight, weight + units * width), bias: values.subarray(bias, bias + units) });
      this.environment = environment;
      this.inputs = inputs;
      this.layers = layers.map(parameters);
      this.recurrence = recurrence.map(parameters);
      this.encoders = Object.fromEntries(Object.entries(encoders).map(([name, one]) => [name, parameters(one)]));
    }
    observe(run) { return run.observe(this.environment); }
    // What is left of observations for the next decision of an episode: the stack, oldest first, and the state of the recurrent
    // layer; and what the layers see of them. Without those before, an episode begins.
    remember(observations, before) {
      const own = Object.fromEntries(this.inputs.map((name) => [name, observations[name].slice()]));
      const stack = before ? [...before.stack.slice(1), own] : new Array(this.environment.frame_stack).fill(own);
      const features = joined(this.inputs.map((name) => {
        const values = joined(stack.map((seen) => seen[name]));
        return name in this.encoders ? layer(this.encoders[name], values.map((value) => Math.fround(value / SOLID))) : values;
      }));
      if (!this.recurrence.length) return { stack, seen: features };
      const state = recur(this.recurrence, features, before?.state ?? new Float64Array(this.recurrence[0].bias.length / 3));
      return { stack, state, seen: joined([features, state]) };
    }
    logits(observations, { seen } = this.remember(observations)) {
      return this.layers.reduce((values, one, number) => layer(one, values, number === this.layers.length - 1), seen);
    }
    // An action for a run: the most probable one, or with {seed, row, step} one drawn by the counter of these.
    act(run, draw) {
      const { frame } = run, kept = this.#kept.get(run), ago = frame - kept?.frame;
      const before = ago === 0 ? kept.before : ago === this.environment.frame_skip ? kept.after : undefined;
      const observations = this.observe(run), after = this.remember(observations, before);
      this.#kept.set(run, { frame, before, after });
      const logits = this.logits(observations, after), most = Math.max(...logits);
      if (!draw) return logits.indexOf(most);
      const shares = logits.map((logit) => Math.exp(logit - most)), total = shares.reduce((sum, share) => sum + share, 0);
      const threshold = uniform(draw.seed, draw.row, draw.step) * total;
      let sum = 0;
      for (let action = 0; action < shares.length; action++) {
        sum += shares[action];
        if (threshold < sum) return action;
      }
      return shares.length - 1;
    }
  }

  return { load: (data) => new Policy(data), uniform };
})();
if (typeof module !== "undefined") module.exports = Policies;
