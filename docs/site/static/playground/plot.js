// Drawing of the playground: points, fields of outputs, contours, curves.

/** Returns the segments of the contour of a (size, size) grid of values at a level, in grid units (marching squares). */
export function contour(values, size, level) {
  const segments = [];
  const crossing = (a, b) => (level - a) / (b - a);
  for (let row = 0; row + 1 < size; row += 1) {
    for (let column = 0; column + 1 < size; column += 1) {
      const i = row * size + column;
      const [a, b, c, d] = [values[i], values[i + 1], values[i + size + 1], values[i + size]];
      const cell = (a >= level) | ((b >= level) << 1) | ((c >= level) << 2) | ((d >= level) << 3);
      if (cell === 0 || cell === 15) continue;
      const top = () => [column + crossing(a, b), row];
      const right = () => [column + 1, row + crossing(b, c)];
      const bottom = () => [column + crossing(d, c), row + 1];
      const left = () => [column, row + crossing(a, d)];
      const add = (p, q) => segments.push([p(), q()]);
      if (cell === 1 || cell === 14) add(left, top);
      else if (cell === 2 || cell === 13) add(top, right);
      else if (cell === 3 || cell === 12) add(left, right);
      else if (cell === 4 || cell === 11) add(right, bottom);
      else if (cell === 6 || cell === 9) add(top, bottom);
      else if (cell === 7 || cell === 8) add(left, bottom);
      else {
        // A saddle: the mean decides which corners are connected.
        const joined = (a + b + c + d) / 4 >= level;
        if ((cell === 5) === joined) {
          add(left, bottom);
          add(top, right);
        } else {
          add(left, top);
          add(right, bottom);
        }
      }
    }
  }
  return segments;
}

/** Joins segments to lines, so that dashes continue from one to the next. */
function joined(segments) {
  const key = ([x, y]) => `${x.toFixed(5)},${y.toFixed(5)}`;
  const at = new Map();
  segments.forEach((segment, i) => {
    for (const end of segment) {
      const ends = at.get(key(end));
      if (ends) ends.push(i);
      else at.set(key(end), [i]);
    }
  });
  const used = new Uint8Array(segments.length);
  /** Returns the points that follow an end of a line. */
  const follow = (point) => {
    const points = [];
    for (;;) {
      const next = at.get(key(point)).find((i) => !used[i]);
      if (next === undefined) return points;
      used[next] = 1;
      const [a, b] = segments[next];
      point = key(a) === key(point) ? b : a;
      points.push(point);
    }
  };
  const lines = [];
  segments.forEach(([a, b], i) => {
    if (used[i]) return;
    used[i] = 1;
    lines.push([...follow(a).reverse(), a, b, ...follow(b)]);
  });
  return lines;
}

/** Returns a (size, size) grid smoothed with weights 1, 2, 1 in both directions, `times` times. */
export function smoothed(values, size, times) {
  const inside = (i) => Math.min(size - 1, Math.max(0, i));
  for (let k = 0; k < 2 * times; k += 1) {
    const step = k % 2 === 0 ? (row, column, d) => row * size + inside(column + d) : (row, column, d) => inside(row + d) * size + column;
    values = values.map((value, i) => {
      const [row, column] = [Math.floor(i / size), i % size];
      return (values[step(row, column, -1)] + 2 * value + values[step(row, column, 1)]) / 4;
    });
  }
  return values;
}

/** A canvas with a range of coordinates, sharp on every screen. */
export class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.range = [[-1.15, 1.15], [-1.15, 1.15]];
    this.buffer = document.createElement("canvas");
  }

  /** Fits the canvas to its place on the page, and clears it. */
  begin(theme) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      [this.canvas.width, this.canvas.height] = [w, h];
    }
    this.width = width;
    this.height = height;
    this.theme = theme;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
  }

  x(value) {
    const [low, high] = this.range[0];
    return ((value - low) / (high - low)) * this.width;
  }

  y(value) {
    const [low, high] = this.range[1];
    return (1 - (value - low) / (high - low)) * this.height;
  }

  /** Returns the coordinates of a place on the canvas, in CSS pixels. */
  at(px, py) {
    const [[x0, x1], [y0, y1]] = this.range;
    return [x0 + (px / this.width) * (x1 - x0), y1 - (py / this.height) * (y1 - y0)];
  }

  /** Fills the canvas with colors of a (size, size) grid whose first row is the lowest; `color(i)` returns [r, g, b, alpha]. */
  field(size, color) {
    this.buffer.width = this.buffer.height = size;
    const context = this.buffer.getContext("2d");
    const image = context.createImageData(size, size);
    for (let row = 0; row < size; row += 1) {
      for (let column = 0; column < size; column += 1) {
        const [r, g, b, alpha] = color(row * size + column);
        const at = 4 * ((size - 1 - row) * size + column);
        image.data[at] = r;
        image.data[at + 1] = g;
        image.data[at + 2] = b;
        image.data[at + 3] = 255 * alpha;
      }
    }
    context.putImageData(image, 0, 0);
    // Values are at the centers of pixels: the outer half pixels lie outside.
    const step = [this.width / (size - 1), this.height / (size - 1)];
    this.context.imageSmoothingEnabled = true;
    this.context.imageSmoothingQuality = "high";
    this.context.drawImage(this.buffer, -step[0] / 2, -step[1] / 2, this.width + step[0], this.height + step[1]);
  }

  lines(values, size, level, { color, width, dash = [] }) {
    const { context } = this;
    const [sx, sy] = [this.width / (size - 1), this.height / (size - 1)];
    context.beginPath();
    for (const [[x0, y0], ...points] of joined(contour(values, size, level))) {
      context.moveTo(x0 * sx, this.height - y0 * sy);
      for (const [x, y] of points) context.lineTo(x * sx, this.height - y * sy);
    }
    context.setLineDash(dash);
    context.lineCap = context.lineJoin = "round";
    context.strokeStyle = color;
    context.lineWidth = width;
    context.stroke();
    context.setLineDash([]);
  }

  curve(xs, ys, { color, width, dash = [] }) {
    const { context } = this;
    context.beginPath();
    ys.forEach((y, i) => context.lineTo(this.x(xs[i]), this.y(y)));
    context.setLineDash(dash);
    context.lineJoin = "round";
    context.strokeStyle = color;
    context.lineWidth = width;
    context.stroke();
    context.setLineDash([]);
  }

  /** Fills between two curves. */
  band(xs, low, high, color) {
    const { context } = this;
    context.beginPath();
    xs.forEach((x, i) => context.lineTo(this.x(x), this.y(high[i])));
    for (let i = xs.length - 1; i >= 0; i -= 1) context.lineTo(this.x(xs[i]), this.y(low[i]));
    context.fillStyle = color;
    context.fill();
  }

  /** Draws a sample: a circle, square or triangle by class. */
  point(x, y, c, { fill, ring = false, faint = false, radius = 4.5 }) {
    const { context } = this;
    const [px, py] = [this.x(x), this.y(y)];
    context.globalAlpha = faint ? 0.35 : 1;
    context.beginPath();
    const shape = (size) => {
      if (c === 1) context.rect(px - 0.88 * size, py - 0.88 * size, 1.76 * size, 1.76 * size);
      else if (c === 2) {
        context.moveTo(px, py - 1.2 * size);
        context.lineTo(px + 1.1 * size, py + 0.8 * size);
        context.lineTo(px - 1.1 * size, py + 0.8 * size);
        context.closePath();
      } else context.arc(px, py, size, 0, 2 * Math.PI);
    };
    shape(radius);
    context.fillStyle = fill;
    context.fill();
    context.lineWidth = 1.25;
    context.strokeStyle = this.theme.surface;
    context.stroke();
    if (ring) {
      context.beginPath();
      context.arc(px, py, radius + 3, 0, 2 * Math.PI);
      context.lineWidth = 1.5;
      context.strokeStyle = this.theme.ink;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Draws a constructed vector: a diamond. */
  diamond(x, y, fill, radius = 7.5) {
    const { context } = this;
    const [px, py] = [this.x(x), this.y(y)];
    context.beginPath();
    context.moveTo(px, py - radius);
    context.lineTo(px + radius, py);
    context.lineTo(px, py + radius);
    context.lineTo(px - radius, py);
    context.closePath();
    context.fillStyle = fill;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = this.theme.ink;
    context.stroke();
  }

  crosshair(x, y) {
    const { context } = this;
    const [px, py] = [this.x(x), this.y(y)];
    context.strokeStyle = this.theme.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(px - 14, py);
    context.lineTo(px - 5, py);
    context.moveTo(px + 5, py);
    context.lineTo(px + 14, py);
    context.moveTo(px, py - 14);
    context.lineTo(px, py - 5);
    context.moveTo(px, py + 5);
    context.lineTo(px, py + 14);
    context.stroke();
  }
}
