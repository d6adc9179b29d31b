// Axes of charts: the range of their data, places of values, and ticks at round numbers. An axis counts in a coordinate,
// which is the value, or its decimal logarithm on a logarithmic axis.

// Coordinates that are shown at most. Differences are taken of halves, which stay below the largest number.
const FARTHEST = { false: Number.MAX_VALUE, true: 330 };

class Scale {
  // Coordinates `ends` = [low, high] lie at the pixels `from` and `to`.
  constructor(log, ends, from, to) { Object.assign(this, { log, ends, from, to, slope: (to - from) / 2 / (ends[1] / 2 - ends[0] / 2) }); }

  coordinate(value) { return this.log ? Math.log10(value) : value; }
  value(coordinate) { return this.log ? 10 ** coordinate : coordinate; }
  // Pixel of a value; not finite where the axis has no place for it.
  pixel(value) { return this.pixelOf(this.coordinate(value)); }
  pixelOf(coordinate) { return this.from + (coordinate / 2 - this.ends[0] / 2) * (2 * this.slope); }
  coordinateAt(pixel) { return this.ends[0] + (pixel - this.from) / this.slope; }

  // About `count` ticks { at, text }, the minor ones without a text, and the number from which linear ones count.
  ticks(count) {
    const [low, high] = this.ends;
    return this.log ? { ticks: logarithmicTicks(low, high, count), base: 0 } : linearTicks(low, high, count);
  }
}

// Range of numbers with a share of room at both ends. Equal numbers lie in the middle, and what differs by the rounding of
// its numbers only is not spread over the whole axis: a range is 20 roundings wide at least.
function padded(low, high, log, share) {
  const farthest = FARTHEST[log], size = Math.max(Math.abs(low), Math.abs(high));
  if (!(low <= high)) return log ? [-1, 1] : [0, 1];
  let room = share * high - share * low;
  if (low === high) room = log ? 1 : size / 10 || 1;
  const least = log ? 1e-12 : Math.max(20 * Number.EPSILON * size, 1e-300);
  if (high - low + 2 * room < least) room = least / 2;
  return [Math.max(low - room, -farthest), Math.min(high + room, farthest)];
}

// Exponent and factor 1, 2 or 5 of the least round number that is not below x.
function roundStep(x) {
  const exponent = Math.floor(Math.log10(x)), tenths = Number(`1e${exponent}`);
  const factor = [1, 2, 5].find((f) => f * tenths >= x * (1 - 1e-9));
  return factor ? [factor, exponent] : [1, exponent + 1];
}

// Decimal number `digits` · 10^`exponent`, rounded once.
function decimal(digits, exponent) { return Number(`${digits}e${exponent}`); }

function linearTicks(low, high, count) {
  const [factor, exponent] = roundStep(Math.min(high / count - low / count, 1e308)), step = decimal(factor, exponent);
  const first = Math.ceil(low / step - 1e-6), last = Math.floor(high / step + 1e-6), size = Math.max(Math.abs(low), Math.abs(high));
  // Where neighbours would differ in the sixth digit and later only, ticks show the difference to a base.
  const unit = decimal(1000, exponent), thousands = size > 1e5 * step ? Math.round((low / 2 + high / 2) / unit) : 0;
  const base = thousands * 1000, numbers = [];
  for (let k = first; k <= last && numbers.length < 100; k++) numbers.push(k * factor);
  const largest = Math.max(...numbers.map((n) => Math.abs(n - base)), 1), scale = exponent + Math.floor(Math.log10(largest) + 1e-9);
  const text = (n) => {
    if (n === 0) return "0";
    if (!needsPower(scale)) return String(decimal(n, exponent)).replace("-", "−");
    return withPower(decimal(n, exponent - scale), scale);
  };
  return { ticks: numbers.map((n) => ({ at: decimal(n, exponent), text: text(n - base) })), base: base && decimal(base, exponent) };
}

function logarithmicTicks(low, high, count) {
  const decades = high - low;
  // Within a decade there is little difference to a linear axis.
  if (decades < 1) return linearTicks(10 ** low, 10 ** high, count).ticks.map(({ at }) => ({ at: Math.log10(at), text: readable(at, 12) })).filter(({ at }) => at >= low && at <= high);
  const step = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200].find((s) => decades / s <= count) || 300, ticks = [];
  const between = step === 1 ? [2, 3, 4, 5, 6, 7, 8, 9] : [], named = decades < 3 && count >= 2 * decades ? [2, 5] : [];
  for (let k = Math.floor(low / step) * step; k <= high; k += step) {
    ticks.push({ at: k, text: power(k) });
    for (const m of between) ticks.push({ at: k + Math.log10(m), text: named.includes(m) ? withPower(m, k) : "" });
  }
  return ticks.filter(({ at }) => at >= low - 1e-9 && at <= high + 1e-9);
}

// Ticks of a scale as many as there is room for: `extent` gives the pixels that a text takes along the axis.
function fittingTicks(scale, most, extent) {
  for (let count = most; ; count--) {
    const found = scale.ticks(count), named = found.ticks.filter((tick) => tick.text).map((tick) => [scale.pixelOf(tick.at), extent(tick.text) / 2]);
    named.sort((a, b) => a[0] - b[0]);
    if (named.every(([at, half], k) => k === 0 || at - half >= named[k - 1][0] + named[k - 1][1])) return found;
    if (count <= 1) return { ...found, ticks: found.ticks.map((tick, k) => (k ? { ...tick, text: "" } : tick)) };
  }
}

// Label of an axis whose ticks count from a base.
function labelFrom(label, base) {
  if (!base) return label;
  const plain = String(Math.abs(base)), power = readable(Math.abs(base), 17);
  return `${label} ${base < 0 ? "+" : "−"} ${power.length < plain.length ? power : plain}`;
}
