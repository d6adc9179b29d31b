// Curves of charts: lines, points and bars on a canvas.

// Outlines of the markers about 0, of size 1.
const MARKERS = [
  "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z", "M-.9-.9H.9V.9H-.9Z", "M0-1.15L1 .6H-1Z", "M0-1.25L1.05 0 0 1.25-1.05 0Z", "M0 1.15L1-.6H-1Z",
  "M-.35-1.1H.35V-.35H1.1V.35H.35V1.1H-.35V.35H-1.1V-.35H-.35Z", "M-1-.5L-.5-1 0-.5.5-1 1-.5.5 0 1 .5.5 1 0 .5-.5 1-1 .5-.5 0Z",
  "M0-1.25L.3-.4 1.2-.4.48.13.74 1 0 .48-.74 1-.48.13-1.2-.4-.3-.4Z",
];
const DASHES = [[], [9, 6], [2, 4], [9, 4, 2, 4], [14, 6]];
// Pixels beyond which a place is moved to the border before a canvas takes it, which counts in 32 bits.
const BEYOND = 20000;

function dashOf(curve) { return DASHES[Math.floor(curve.colour / COLOURS) % DASHES.length]; }
function markerOf(curve) { return MARKERS[curve.colour % MARKERS.length]; }
function hasLine(curve) { return curve.style === "line" || curve.style === "faint" || curve.style === "marked"; }
function hasPoints(curve) { return curve.style === "points" || curve.style === "marked"; }

// Half of the width of the bars of a histogram, in coordinates.
function halfBar(curve, scale) {
  const at = Array.from(curve.x, (x) => scale.coordinate(x)).filter(Number.isFinite).sort((a, b) => a - b);
  const gaps = at.slice(1).map((x, k) => x - at[k]).filter((gap) => gap > 0);
  return gaps.length ? Math.min(...gaps) / 2 : Math.abs(at[0]) / 20 || 0.5;
}

// Pixels of the points of a curve; NaN where an axis has no place for one.
function places(curve, { x, y }) {
  const count = Math.min(curve.x.length, curve.y.length), px = new Float64Array(count), py = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    px[k] = x.pixel(curve.x[k]);
    py[k] = y.pixel(curve.y[k]);
    if (!Number.isFinite(px[k]) || !Number.isFinite(py[k])) px[k] = py[k] = NaN;
  }
  return { curve, px, py };
}

function drawCurve(pen, drawn, scales, paint) {
  const { curve } = drawn, many = drawn.px.length;
  pen.save();
  pen.strokeStyle = pen.fillStyle = paint;
  pen.lineJoin = "round";
  if (curve.style === "bars") drawBars(pen, drawn, scales);
  if (hasLine(curve)) {
    pen.setLineDash(dashOf(curve));
    pen.lineWidth = curve.style === "faint" ? 0.7 : curve.style === "marked" ? 1.6 : many > 4000 ? 1 : 2;
    pen.globalAlpha = curve.style === "faint" ? 0.3 : 1;
    pen.beginPath();
    if (curve.smooth && many <= 4000) traceSmooth(pen, drawn); else traceStraight(pen, drawn);
    pen.stroke();
    pen.setLineDash([]);
    drawAlone(pen, drawn, curve.style === "faint" ? 1 : 2.5);
  }
  if (hasPoints(curve)) drawPoints(pen, drawn);
  pen.restore();
}

// Straight lines between neighbours. Points that follow each other within half a pixel of x count by the first, the last,
// the highest and the lowest, which cover the same pixels.
function traceStraight(pen, { px, py }) {
  const path = new Path(pen), held = [];
  let column = NaN, low = 0, high = 0, last = 0;
  const flush = () => {
    held.push(Math.min(low, high), Math.max(low, high), last);
    for (const k of held) path.to(px[k], py[k]);
    held.length = 0;
    column = NaN;
  };
  for (let k = 0; k < px.length; k++) {
    if (Number.isNaN(px[k])) { if (!Number.isNaN(column)) flush(); path.gap(); continue; }
    const here = Math.round(2 * px[k]);
    if (here === column) {
      if (py[k] < py[low]) low = k;
      if (py[k] > py[high]) high = k;
      last = k;
      continue;
    }
    if (!Number.isNaN(column)) flush();
    path.to(px[k], py[k]);
    column = here;
    low = high = last = k;
  }
  if (!Number.isNaN(column)) flush();
}

// A path on a canvas, of lines that are cut where they leave the reach of its numbers.
class Path {
  constructor(pen) { this.pen = pen; this.gap(); }
  gap() { this.x = this.y = NaN; }
  to(x, y) {
    const { pen } = this, near = Math.abs(x) < BEYOND && Math.abs(y) < BEYOND, wasNear = Math.abs(this.x) < BEYOND && Math.abs(this.y) < BEYOND;
    if (near && wasNear) pen.lineTo(x, y);
    else if (Number.isNaN(this.x)) { if (near) pen.moveTo(x, y); }
    else {
      const cut = within(this.x, this.y, x, y);
      if (cut) { pen.moveTo(cut[0], cut[1]); pen.lineTo(cut[2], cut[3]); }
      if (near) pen.moveTo(x, y);
    }
    this.x = x;
    this.y = y;
  }
}

// Part of a line that lies within reach, [x, y, x, y], or null: it is cut along one axis, then along the other.
function within(ax, ay, bx, by) {
  const ends = [[ax, ay], [bx, by]];
  for (const axis of [0, 1]) {
    const [from, to] = ends.map((end) => end[axis]), border = (at) => Math.max(-BEYOND, Math.min(BEYOND, at));
    if (border(from) === border(to) && from !== border(from)) return null;
    const others = ends.map((end) => end[1 - axis]);
    for (const end of ends) {
      const at = border(end[axis]);
      if (at === end[axis]) continue;
      end[1 - axis] = others[0] + (others[1] - others[0]) * ((at - from) / (to - from));
      end[axis] = at;
    }
  }
  return ends.flat();
}

// A smooth line through neighbours: cubics with centripetal parameters, which make no loops (Yuksel, Schaefer, Keyser 2011).
function traceSmooth(pen, { px, py }) {
  const far = (k) => !(Math.abs(px[k]) < BEYOND && Math.abs(py[k]) < BEYOND);
  // Control point at b, on the side of c, of the cubic through a, b, c.
  const control = (a, b, c) => {
    if (!(a >= 0 && a < px.length) || far(a)) return [px[b], py[b]];
    const before = Math.hypot(px[b] - px[a], py[b] - py[a]), after = Math.hypot(px[c] - px[b], py[c] - py[b]), root = Math.sqrt(before * after);
    const whole = 3 * (before + root);
    if (!(whole > 0)) return [px[b], py[b]];
    return [px, py].map((p) => p[b] + (before * (p[c] - p[b]) + after * (p[b] - p[a])) / whole);
  };
  for (let k = 0; k < px.length; k++) {
    if (far(k)) continue;
    if (k === 0 || far(k - 1)) { pen.moveTo(px[k], py[k]); continue; }
    pen.bezierCurveTo(...control(k - 2, k - 1, k), ...control(k + 1, k, k - 1), px[k], py[k]);
  }
}

// Points of a line that have no neighbours, which a line would not show.
function drawAlone(pen, { px, py }, radius) {
  const gap = (k) => !(k >= 0 && k < px.length) || Number.isNaN(px[k]);
  for (let k = 0; k < px.length; k++) if (!gap(k) && gap(k - 1) && gap(k + 1) && Math.abs(px[k]) < BEYOND) { pen.beginPath(); pen.arc(px[k], py[k], radius, 0, 7); pen.fill(); }
}

function drawPoints(pen, { curve, px, py }) {
  const size = curve.style === "marked" ? 4.5 : px.length > 3000 ? 1.25 : px.length > 400 ? 1.75 : 3, outline = new Path2D(markerOf(curve));
  pen.lineWidth = 1.5 / size;
  const base = pen.getTransform();
  for (let k = 0; k < px.length; k++) {
    if (!(Math.abs(px[k]) < BEYOND && Math.abs(py[k]) < BEYOND)) continue;
    if (size < 1.5) { pen.fillRect(px[k] - size, py[k] - size, 2 * size, 2 * size); continue; }
    pen.translate(px[k], py[k]);
    pen.scale(size, size);
    if (curve.bounds && curve.bounds[k]) pen.stroke(outline); else pen.fill(outline);
    pen.setTransform(base);
  }
}

function drawBars(pen, { curve, px, py }, { x, y }) {
  const half = halfBar(curve, x), foot = y.log ? y.from : y.pixel(0);
  pen.globalAlpha = 0.85;
  for (let k = 0; k < px.length; k++) {
    if (Number.isNaN(px[k])) continue;
    const middle = x.coordinate(curve.x[k]), left = Math.max(-BEYOND, x.pixelOf(middle - 0.96 * half)), right = Math.min(BEYOND, x.pixelOf(middle + 0.96 * half));
    const top = Math.max(-BEYOND, Math.min(BEYOND, py[k]));
    pen.fillRect(left, Math.min(top, foot), Math.max(1, right - left), Math.abs(foot - top));
  }
}
