// Data sets of the playground: points in the square [-1, 1]^2, from a seed.

/** Returns a generator of numbers in [0, 1) (mulberry32). */
function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Points by name: (i, n, random, gauss) to [x, y, class]. */
const CLASSIFICATION = {
  moons: (i, n, random, gauss) => {
    const [c, angle] = [i % 2, Math.PI * random()];
    const [x, y] = c === 0 ? [Math.cos(angle), Math.sin(angle)] : [1 - Math.cos(angle), 0.5 - Math.sin(angle)];
    return [(x - 0.5) / 1.7 + 0.13 * gauss(), (y - 0.25) / 1.3 + 0.13 * gauss(), c];
  },
  circles: (i, n, random, gauss) => {
    const [c, angle] = [i % 2, 2 * Math.PI * random()];
    const radius = (c === 0 ? 0.8 : 0.35) + 0.09 * gauss();
    return [radius * Math.cos(angle), radius * Math.sin(angle), c];
  },
  spirals: (i, n, random, gauss) => {
    const [c, t] = [i % 2, 0.1 + 0.9 * Math.sqrt(random())];
    const angle = 2.3 * Math.PI * t + c * Math.PI;
    return [0.95 * t * Math.cos(angle) + 0.03 * gauss(), 0.95 * t * Math.sin(angle) + 0.03 * gauss(), c];
  },
  blobs: (i, n, random, gauss) => {
    const c = i % 3;
    const [x, y] = [[-0.5, -0.4], [0.55, -0.3], [0, 0.55]][c];
    return [x + 0.22 * gauss(), y + 0.22 * gauss(), c];
  },
};

const REGRESSION = {
  wave: (i, n, random, gauss) => {
    const x = 2 * random() - 1;
    return [x, 0.6 * Math.sin(4.5 * x) * (0.6 + 0.4 * x) + 0.1 * gauss(), 0];
  },
  step: (i, n, random, gauss) => {
    const x = 2 * random() - 1;
    return [x, (x < 0.1 ? -0.4 : 0.45) + 0.08 * gauss(), 0];
  },
  outliers: (i, n, random, gauss) => {
    const x = 2 * random() - 1;
    return [x, i % 9 === 0 ? 0.8 - 0.2 * random() : -0.5 * Math.cos(4 * x) - 0.1 + 0.06 * gauss(), 0];
  },
};

const DETECTION = {
  cluster: (i, n, random, gauss) =>
    i % 20 === 0
      ? [1.9 * random() - 0.95, 1.9 * random() - 0.95, 0]
      : [0.25 * gauss() + 0.2, 0.2 * gauss() - 0.1, 0],
  ring: (i, n, random, gauss) => {
    if (i % 20 === 0) return [1.9 * random() - 0.95, 1.9 * random() - 0.95, 0];
    const angle = 2 * Math.PI * random();
    const radius = 0.65 + 0.07 * gauss();
    return [radius * Math.cos(angle), radius * Math.sin(angle), 0];
  },
  two: (i, n, random, gauss) => {
    if (i % 20 === 0) return [1.9 * random() - 0.95, 1.9 * random() - 0.95, 0];
    const side = i % 2 === 0 ? -0.45 : 0.45;
    return [side + 0.14 * gauss(), 0.6 * side + 0.18 * gauss(), 0];
  },
};

export const DATA_SETS = {
  classification: { labels: { moons: "Moons", circles: "Circles", spirals: "Spirals", blobs: "Three blobs" }, of: CLASSIFICATION, n: 200 },
  regression: { labels: { wave: "Wave", step: "Step", outliers: "Wave with outliers" }, of: REGRESSION, n: 90 },
  detection: { labels: { cluster: "Cluster", ring: "Ring", two: "Two clusters" }, of: DETECTION, n: 160 },
};

/** Returns points {x, y, c} of a data set. */
export function draw(task, name, seed) {
  const { of, n } = DATA_SETS[task];
  const random = uniform(seed * 7919 + 17);
  const clip = (value) => Math.max(-1.08, Math.min(1.08, value));
  return Array.from({ length: n }, (_, i) => {
    const [x, y, c] = of[name](i, n, random, () => normal(random));
    return { x: clip(x), y: clip(y), c };
  });
}
