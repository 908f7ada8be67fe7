"use strict";
// Drawing: walls, beams and sprites of one frame, as the pictures of the package show them.

class Scene {
  constructor(canvas, level, walls, sheet) {
    Object.assign(this, { canvas, level, walls, sheet, context: canvas.getContext("2d") });
    const { left, top, width } = level.area;
    this.scale = canvas.width / width; // pixels of the canvas per pixel of the world
    this.corner = [left * this.scale, top * this.scale];
    this.context.imageSmoothingQuality = "high";
    this.context.translate(-this.corner[0], -this.corner[1]);
  }

  /** Draw a frame of a run, and others as ghosts: {run, colour}. */
  draw(run, frame, { colour, ghosts, path }) {
    const context = this.context;
    context.drawImage(this.walls, ...this.corner, this.canvas.width, this.canvas.height);
    this.drawBeams(run, frame);
    for (let value = 0; value < run.ninja; value += 3) this.drawSprite(run, value, frame);
    if (path) this.drawPath(run, frame);
    for (const ghost of ghosts) {
      context.globalAlpha = 0.55;
      this.drawSprite(ghost.run, ghost.run.ninja, frame);
      context.globalAlpha = 1;
      this.drawMark(ghost.run, frame, ghost.colour);
    }
    this.drawSprite(run, run.ninja, frame);
    if (ghosts.length) this.drawMark(run, frame, colour);
  }

  pixel(steps) { return (steps * this.scale) / this.level.steps; }

  drawSprite(run, value, frame) {
    const number = run.at(value, frame);
    if (number < 0) return;
    const { side, columns, sprite: extent } = this.level, size = extent * this.scale;
    const left = this.pixel(run.at(value + 1, frame)) - size / 2, top = this.pixel(run.at(value + 2, frame)) - size / 2;
    const row = Math.floor(number / columns), column = number % columns;
    this.context.drawImage(this.sheet, column * side, row * side, side, side, left, top, size, size);
  }

  drawBeams(run, frame) {
    for (let value = run.beams; value < run.own; value += 5) {
      const beam = this.level.beams[run.at(value, frame)];
      if (beam) this.drawLine([[1, 2], [3, 4]].map(([x, y]) => [run.at(value + x, frame), run.at(value + y, frame)]), beam);
    }
  }

  drawPath(run, frame) {
    const points = [];
    for (let each = 0; each <= Math.min(frame, run.frames); each++) {
      points.push([run.at(run.ninja + 1, each), run.at(run.ninja + 2, each)]);
    }
    this.drawLine(points, { colour: "#1f6fa8b0", width: 1.5 });
  }

  drawLine(points, { colour, width }) {
    const context = this.context;
    context.beginPath();
    for (const [x, y] of points) context.lineTo(this.pixel(x), this.pixel(y));
    context.strokeStyle = colour;
    context.lineWidth = width * this.scale;
    context.lineJoin = "round";
    context.stroke();
  }

  /** Draw a small triangle of a run's colour above its ninja. */
  drawMark(run, frame, colour) {
    const context = this.context, size = 4 * this.scale;
    const x = this.pixel(run.at(run.ninja + 1, frame)), y = this.pixel(run.at(run.ninja + 2, frame)) - 13 * this.scale;
    context.beginPath();
    context.moveTo(x - size, y - 1.5 * size);
    context.lineTo(x + size, y - 1.5 * size);
    context.lineTo(x, y);
    context.closePath();
    context.fillStyle = colour;
    context.fill();
    context.strokeStyle = "#fff";
    context.lineWidth = 0.75 * this.scale;
    context.stroke();
  }
}
