"use strict";
// Numbers of the page, which are compressed, and what all its scripts need.

async function unpack() {
  const text = document.getElementById("numbers").textContent;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Array of a reference: [kind, first byte, count], and for places also [..., least, step, columns, far]. Stored are the
// differences of the bits of neighbours, first the lowest byte of each.
function numbers(buffer, [kind, start, count, least, step, columns, far]) {
  const width = Number(kind[1]), planes = new Uint8Array(buffer, start, width * count), bytes = new Uint8Array(width * count);
  for (let plane = 0; plane < width; plane++) for (let k = 0; k < count; k++) bytes[k * width + plane] = planes[plane * count + k];
  const bits = new { f8: BigUint64Array, f4: Uint32Array, u2: Uint16Array }[kind](bytes.buffer);
  for (let k = 1; k < count; k++) bits[k] += bits[k - 1];
  if (kind === "f8") return new Float64Array(bytes.buffer);
  if (kind === "f4") return new Float32Array(bytes.buffer);
  const rows = count / columns, placed = new Float64Array(count);
  bits.forEach((steps, k) => { const column = Math.floor(k / rows); placed[(k % rows) * columns + column] = steps === 65535 ? NaN : far[column % 3] + (least + step * steps); });
  return placed;
}

// Place of t in ascending times: the last one not after t, and the part of the way from it to the next.
function locate(times, t) {
  let low = 0, high = times.length - 1;
  if (!(t > times[0])) return [0, 0];
  if (t >= times[high]) return [high, 0];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle; else high = middle;
  }
  return [low, (t - times[low]) / (times[high] - times[low])];
}

function short(x) {
  if (!Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  if (x !== 0 && (size < 1e-3 || size >= 1e5)) return x.toExponential(2).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  return String(Number(x.toPrecision(5))).replace("-", "−");
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child));
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
const COLOURS = 8;
function curveColour(k) {
  return colour(`--c${k % COLOURS}`);
}
