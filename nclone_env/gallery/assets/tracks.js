"use strict";
// The values of a run, frame by frame, as nclone_env/gallery/tracks.py describes them.

/** Return the value before the first frame and after each of `frames` frames; `text` is a track, or undefined. */
function column(text, start, frames) {
  const values = new Int32Array(frames + 1).fill(start);
  if (text === undefined) return values;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  let value = start, frame = 0, place = 0;
  while (place < bytes.length) {
    let number = 0, scale = 1, byte;
    do {
      byte = bytes[place++];
      number += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    const half = Math.floor(number / 2);
    if (number % 2) {
      values.fill(value, frame + 1, frame + half + 2);
      frame += half + 1;
    } else {
      value += half % 2 ? -(half + 1) / 2 : half / 2;
      values[++frame] = value;
    }
  }
  return values.fill(value, frame + 1);
}

/** A run of a level: columns of its values, decoded when they are first asked for. */
class Run {
  constructor(level, run) {
    this.frames = run.frames;
    this.start = level.start;
    this.tracks = run.tracks;
    this.ninja = 3 * (level.sprites - 1);
    this.beams = 3 * level.sprites;
    this.own = this.beams + 5 * level.shooters;
    this.columns = new Map();
  }

  /** Return a value after a frame; a run that is over keeps its last values. */
  at(value, frame) {
    if (!(value in this.tracks)) return this.start[value];
    let values = this.columns.get(value);
    if (!values) this.columns.set(value, (values = column(this.tracks[value], this.start[value], this.frames)));
    return values[Math.min(frame, this.frames)];
  }

  state(frame) { return this.at(this.own, frame); }
  gold(frame) { return this.at(this.own + 2, frame); }
  input(frame) { return frame > this.frames ? 0 : this.at(this.own + 3, frame); }
}
