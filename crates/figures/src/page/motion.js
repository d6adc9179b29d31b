// Numbers of an array from `first` on, between two frames of so many numbers each: by the cubic through the frames
// around (Catmull, Rom), as a polygon would show its corners.
function cubic(array, width, first, frame, share, out) {
  const at = frame * width + first;
  if (!(share > 0)) { for (let c = 0; c < out.length; c++) out[c] = array[at + c]; return out; }
  const before = frame > 0 ? at - width : at, next = at + width, after = next + width < array.length ? next + width : next, s = share;
  for (let c = 0; c < out.length; c++) {
    const p = array[before + c], q = array[at + c], u = array[next + c], v = array[after + c];
    out[c] = q + 0.5 * s * (u - p + s * (2 * p - 5 * q + 4 * u - v + s * (3 * (q - u) + v - p)));
  }
  return out;
}

// Length of the axes of a body in relation to the longest half of its sides.
const AXES = 1.55;

// A spring between two places, whose windings are as many at every length.
function coil(pen, [ax, ay], [bx, by], ball, ink) {
  const [dx, dy] = [bx - ax, by - ay], length = Math.hypot(dx, dy), windings = 9;
  if (!(length > 0)) return;
  const wide = Math.max(2.5, Math.min(0.6 * ball, 0.12 * length)), [nx, ny] = [(-dy / length) * wide, (dx / length) * wide];
  pen.strokeStyle = ink.soft; pen.lineWidth = 1.6; pen.lineJoin = "round";
  pen.beginPath(); pen.moveTo(ax, ay);
  for (let k = 0; k <= 2 * windings; k++) {
    const share = 0.12 + (0.76 * k) / (2 * windings), side = k === 0 || k === 2 * windings ? 0 : k % 2 ? 1 : -1;
    pen.lineTo(ax + share * dx + side * nx, ay + share * dy + side * ny);
  }
  pen.lineTo(bx, by); pen.stroke();
}

// The motion on a canvas: points, sticks and rigid bodies, seen from a place that can be turned.

class MotionView {
  constructor(canvas, motion, forms, colours) {
    Object.assign(this, { canvas, first: colours, turn: -0.9, tilt: 0.35, zoom: 1, shift: [0, 0], t: motion.times[0], trail: true });
    this.show(motion, forms);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // Shows another view of the same motion.
  show(motion, forms) {
    Object.assign(this, { motion, forms, points: motion.moving + motion.fixed.length, length: 0 });
    this.measure();
    this.draw();
  }

  // Compute the box of all positions.
  measure() {
    const { positions, fixed, bodies, dimension } = this.motion;
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    const take = (x, axis) => { if (Number.isFinite(x)) { low[axis] = Math.min(low[axis], x); high[axis] = Math.max(high[axis], x); } };
    positions.forEach((x, k) => take(x, k % 3));
    fixed.forEach((point) => point.forEach(take));
    this.forms.measure(take);
    if (!(low[0] <= high[0]) && !bodies.length) { low.fill(-1); high.fill(1); }
    this.middle = low.map((x, k) => (x + high[k]) / 2);
    this.sides = low.map((x, k) => high[k] - x);
    // A motion in space can be turned to any side, so its diagonal has to fit.
    const diagonal = Math.hypot(...this.sides);
    this.radius = (dimension === 3 ? diagonal / 2 : 0) || Math.max(...this.sides) / 2 || 1;
    // Bodies are as large as their axes are long.
    const reach = Math.max(0, ...bodies.map((body) => AXES * Math.max(...body.half)));
    bodies.filter((body) => body.at === null).forEach((body) => body.place.forEach((x, axis) => { take(x - reach, axis); take(x + reach, axis); }));
    if (bodies.length) {
      const moving = bodies.some((body) => body.at !== null) ? reach : 0;
      this.middle = low.map((x, k) => (x + high[k]) / 2);
      this.sides = low.map((x, k) => high[k] - x + 2 * moving);
      this.radius = bodies.length === 1 && bodies[0].at === null && !this.motion.moving ? 1.12 * reach : Math.hypot(...this.sides) / 2;
    }
    this.low = low;
  }

  listen() {
    const canvas = this.canvas, held = new Map();
    let spread = 0;
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); held.set(event.pointerId, [event.clientX, event.clientY]); spread = 0; });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return;
      const [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
      held.set(event.pointerId, [event.clientX, event.clientY]);
      if (held.size === 2) {
        const [a, b] = [...held.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (spread) this.scale(now / spread);
        spread = now;
      } else if (this.motion.dimension === 3 && !event.shiftKey) this.rotate(dx * 0.008, dy * 0.008);
      else { this.shift[0] += dx; this.shift[1] += dy; this.draw(); }
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => held.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.scale(Math.exp(-event.deltaY * 0.0015)); }, { passive: false });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => {
      const step = 0.12, act = {
        ArrowLeft: () => this.rotate(-step, 0), ArrowRight: () => this.rotate(step, 0), ArrowUp: () => this.rotate(0, step), ArrowDown: () => this.rotate(0, -step),
        "+": () => this.scale(1.2), "=": () => this.scale(1.2), "-": () => this.scale(1 / 1.2), 0: () => this.reset(),
      }[event.key];
      if (act) { event.preventDefault(); event.stopPropagation(); act(); }
    });
  }

  rotate(turn, tilt) {
    if (this.motion.dimension !== 3) { this.shift[0] -= turn * 200; this.shift[1] += tilt * 200; }
    else { this.turn += turn; this.tilt = Math.max(-1.57, Math.min(1.57, this.tilt + tilt)); }
    this.draw();
  }
  scale(factor) { this.zoom = Math.max(0.1, Math.min(50, this.zoom * factor)); this.draw(); }
  reset() { this.zoom = 1; this.shift = [0, 0]; this.turn = -0.9; this.tilt = 0.35; this.draw(); }
  at(t) { this.t = t; this.draw(); }

  // The camera: a point of space to pixels right, pixels down, and depth towards the eye.
  camera(width, height) {
    const { middle, dimension, turn, tilt, zoom, shift } = this, flat = this.motion.dimension === 2;
    const margin = flat ? 0.86 : 1.12, size = flat
      ? Math.min(width / (this.sides[0] || this.radius * 2), height / (this.sides[1] || this.radius * 2)) * margin * zoom
      : (Math.min(width, height) / 2 / this.radius) * margin * zoom;
    const [ct, st, cu, su] = [Math.cos(tilt), Math.sin(tilt), Math.cos(turn), Math.sin(turn)];
    return {
      size,
      see: (x, y, z) => {
        x -= middle[0]; y -= middle[1]; z -= middle[2];
        if (flat) return [width / 2 + shift[0] + x * size, height / 2 + shift[1] - y * size, 0];
        const right = cu * x + su * y, away = -su * x + cu * y;
        return [width / 2 + shift[0] + right * size, height / 2 + shift[1] - (ct * z + st * away) * size, -ct * away + st * z];
      },
    };
  }

  // Position of a point in a frame, or between two.
  point(k, frame, share, out) {
    const { positions, moving, fixed } = this.motion;
    if (k >= moving) { [out[0], out[1], out[2]] = fixed[k - moving]; return out; }
    return cubic(positions, 3 * moving, 3 * k, frame, share, out);
  }

  draw() {
    const { canvas, motion } = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const ink = { soft: colour("--soft"), line: colour("--line"), ink: colour("--ink"), card: colour("--card"), grid: colour("--grid") };
    const colours = Array.from({ length: COLOURS }, (_, k) => curveColour(this.first + k));
    const camera = this.camera(width, height), { see, size } = camera, [frame, between] = locate(motion.times, this.t);
    // Between unrelated states there is nothing to be seen.
    const share = motion.stroboscopic ? 0 : between;
    this.ground(pen, see, ink);
    if (motion.dimension === 3) this.compass(pen, camera, width, height, ink);
    if (this.trail) { this.path(pen, see, colours); this.trails(pen, see, frame, colours); }
    const seen = new Float32Array(3 * this.points), place = [0, 0, 0];
    for (let k = 0; k < this.points; k++) {
      this.point(k, frame, share, place);
      seen.set(see(place[0], place[1], place[2]), 3 * k);
    }
    const ball = this.ball(width, height, size);
    // Far things first.
    const many = this.points > 600, order = this.forms.pieces(frame, share, camera, colours, ink).map(([depth, paint]) => [depth, 2, paint]);
    motion.sticks.forEach(([a, b], k) => order.push([Math.min(seen[3 * a + 2], seen[3 * b + 2]) - 1e-6, 0, k]));
    motion.springs.forEach(([a, b], k) => order.push([Math.min(seen[3 * a + 2], seen[3 * b + 2]) - 1e-6, 3, k]));
    for (let k = 0; k < this.points; k++) if (k < motion.balls || k >= motion.moving) order.push([seen[3 * k + 2], 1, k]);
    if (!(many && motion.dimension === 2)) order.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    pen.lineCap = "round";
    if (motion.string) this.string(pen, seen, ink);
    for (const [, kind, k] of order) {
      if (kind === 2) k(pen);
      else if (kind === 3) coil(pen, ...motion.springs[k].map((end) => seen.subarray(3 * end, 3 * end + 2)), ball, ink);
      else if (kind === 0) {
        const [a, b] = motion.sticks[k];
        pen.strokeStyle = ink.soft;
        pen.lineWidth = motion.balls || motion.bodies.length ? Math.max(1, ball * 0.42) : Math.max(0.6, Math.min(2, ball * 0.42)); // rods, or the lines of a net
        pen.beginPath(); pen.moveTo(seen[3 * a], seen[3 * a + 1]); pen.lineTo(seen[3 * b], seen[3 * b + 1]); pen.stroke();
      } else this.sphere(pen, seen[3 * k], seen[3 * k + 1], k, ball, colours, ink, many);
    }
    this.solids(pen, see, frame, share, colours, ink);
  }

  // Radius of a point in pixels: smaller if there are many.
  ball(width, height, size) {
    const sticks = this.motion.sticks.length ? this.stickLength() * size * 0.24 : this.motion.string ? size * 0.32 : Infinity;
    return Math.max(1.2, Math.min(11, sticks, (Math.min(width, height) * 0.5) / Math.sqrt(this.points + 8)));
  }

  stickLength() {
    if (this.length) return this.length;
    const a = [0, 0, 0], b = [0, 0, 0];
    const lengths = this.motion.sticks.map(([i, j]) => { this.point(i, 0, 0, a); this.point(j, 0, 0, b); return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); });
    lengths.sort((x, y) => x - y);
    return (this.length = lengths[lengths.length >> 1] || 1);
  }

  sphere(pen, x, y, k, ball, colours, ink, many) {
    if (!Number.isFinite(x)) return;
    const fixed = k >= this.motion.moving;
    const kind = this.motion.kinds.length ? this.motion.kinds[k] : this.motion.moving <= COLOURS ? k : 0;
    const paint = fixed ? ink.soft : colours[kind % COLOURS];
    const radius = fixed ? ball * 0.62 : this.motion.kinds.length && kind ? ball * 0.72 : ball;
    if (fixed) { pen.fillStyle = paint; pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius); return; }
    if (many) { pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.fillStyle = paint; pen.fill(); } else ballOf(pen, x, y, radius, paint);
  }

  string(pen, seen, ink) {
    pen.strokeStyle = ink.soft; pen.lineWidth = 1.2; pen.beginPath();
    for (let k = 0; k < this.motion.moving; k++) pen[k ? "lineTo" : "moveTo"](seen[3 * k], seen[3 * k + 1]);
    pen.stroke();
  }

  // Axes of the plane, or a ground below a motion in space.
  ground(pen, see, ink) {
    pen.strokeStyle = ink.grid; pen.lineWidth = 1;
    const line = (a, b) => { const p = see(...a), q = see(...b); pen.beginPath(); pen.moveTo(p[0], p[1]); pen.lineTo(q[0], q[1]); pen.stroke(); };
    const { middle, radius } = this, r = radius * 0.95;
    if (this.motion.dimension === 2) {
      const far = radius * 40;
      line([-far, 0, 0], [far, 0, 0]); line([0, -far, 0], [0, far, 0]);
      return;
    }
    const base = this.motion.moving || this.forms.all.length ? this.low[2] - 0.04 * radius : -radius * 0.9;
    const [cx, cy] = middle;
    for (let k = -4; k <= 4; k++) { const s = (k / 4) * r; line([cx + s, cy - r, base], [cx + s, cy + r, base]); line([cx - r, cy + s, base], [cx + r, cy + s, base]); }
  }

  // Directions of the axes of space, in the corner of the picture.
  compass(pen, { see, size }, width, height, ink) {
    const [x, y] = [width - 44, height - 40], long = 24, o = see(...this.middle);
    pen.font = "12px system-ui, sans-serif"; pen.fillStyle = pen.strokeStyle = ink.soft; pen.lineWidth = 1.4;
    ["x", "y", "z"].forEach((name, axis) => {
      const end = this.middle.slice(); end[axis] += long / size;
      const p = see(...end), [dx, dy] = [p[0] - o[0], p[1] - o[1]], share = 1 + 9 / Math.max(9, Math.hypot(dx, dy));
      pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + dx, y + dy); pen.stroke();
      pen.fillText(name, x + dx * share - 3, y + dy * share + 4);
    });
  }

  // Trails of the points: of all if there are few, otherwise of the last one.
  trails(pen, see, frame, colours) {
    const { motion } = this, all = this.tracks(colours);
    const length = Math.min(frame, 500), fine = 4, place = [0, 0, 0];
    if (motion.stroboscopic) { for (const track of all) this.traces(pen, see, track, frame); return; }
    for (const track of all) {
      pen.strokeStyle = track.paint;
      pen.lineWidth = 1.6;
      const pieces = 24;
      for (let piece = 0; piece < pieces; piece++) {
        const from = frame - length + Math.floor((length * piece) / pieces), to = frame - length + Math.floor((length * (piece + 1)) / pieces);
        if (to <= from) continue;
        pen.globalAlpha = 0.06 + (0.7 * (piece + 1)) / pieces;
        pen.beginPath();
        for (let f = from; f <= to; f += 1 / fine) { track.at(Math.floor(f), f - Math.floor(f), place); const p = see(place[0], place[1], place[2]); pen[f === from ? "moveTo" : "lineTo"](p[0], p[1]); }
        pen.stroke();
      }
      pen.globalAlpha = 1;
    }
    for (let body = 0; body < motion.bodies.length && body < 3; body++) {
      if (motion.bodies[body].at !== null) continue;
      pen.strokeStyle = colours[2]; pen.lineWidth = 1.4;
      const r = new Array(9), { place: o, half } = motion.bodies[body], long = AXES * Math.max(...half);
      const tip = (g) => { cubic(motion.rotations, 9 * motion.bodies.length, 9 * body, Math.floor(g), g - Math.floor(g), r); return see(o[0] + long * r[2], o[1] + long * r[5], o[2] + long * r[8]); };
      for (let f = frame - length + 1 / fine; f <= frame; f += 1 / fine) {
        const a = tip(f - 1 / fine), b = tip(f);
        pen.globalAlpha = 0.08 + 0.6 * (1 - (frame - f) / (length + 1));
        pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.stroke();
      }
      pen.globalAlpha = 1;
    }
  }

  // What leaves trails: the points if they are few, otherwise the last one; and what the model says.
  tracks(colours) {
    const { balls, kinds, string } = this.motion;
    const points = balls <= 6 ? [...Array(balls).keys()] : balls <= 400 && !kinds.length && !string ? [balls - 1] : [];
    const track = (k) => ({ at: (frame, share, out) => this.point(k, frame, share, out), paint: this.paint(k, colours) });
    return [...points.map(track), ...this.forms.tracks(colours)];
  }

  paint(k, colours) { return colours[(this.motion.kinds.length ? this.motion.kinds[k] : this.motion.moving <= COLOURS ? k : 1) % COLOURS]; }

  // The whole way of the points, faintly.
  path(pen, see, colours) {
    const { motion } = this, frames = motion.times.length, place = [0, 0, 0], fine = motion.stroboscopic ? 1 : Math.max(1, Math.min(4, Math.floor(4000 / frames)));
    pen.globalAlpha = 0.22;
    pen.lineWidth = 1;
    for (const track of this.tracks(colours)) {
      pen.strokeStyle = pen.fillStyle = track.paint;
      pen.beginPath();
      for (let j = 0; j <= (frames - 1) * fine; j++) {
        const f = j / fine;
        track.at(Math.floor(f), f - Math.floor(f), place);
        const p = see(place[0], place[1], place[2]);
        if (motion.stroboscopic) pen.fillRect(p[0] - 1, p[1] - 1, 2, 2); else pen[j ? "lineTo" : "moveTo"](p[0], p[1]);
      }
      if (!motion.stroboscopic) pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  // The last states of a point that are not joined.
  traces(pen, see, track, frame) {
    const from = Math.max(0, frame - 1500), place = [0, 0, 0];
    pen.fillStyle = track.paint;
    pen.globalAlpha = 0.6;
    for (let f = from; f <= frame; f++) { track.at(f, 0, place); const p = see(place[0], place[1], place[2]); pen.fillRect(p[0] - 1, p[1] - 1, 2, 2); }
    pen.globalAlpha = 1;
  }

  // Boxes with the axes of their bodies.
  solids(pen, see, frame, share, colours, ink) {
    const { rotations, bodies } = this.motion;
    const place = [0, 0, 0], drawn = bodies.map((body, k) => {
      const centre = body.at === null ? body.place : [...this.point(body.at, frame, share, place)];
      return { ...body, k, centre, depth: see(...centre)[2] };
    });
    // Far bodies first.
    for (const { k: body, centre: o, half } of drawn.sort((a, b) => a.depth - b.depth)) {
      const r = cubic(rotations, 9 * bodies.length, 9 * body, frame, share, new Array(9)), long = AXES * Math.max(...half);
      const corner = (u) => see(o[0] + r[0] * u[0] + r[1] * u[1] + r[2] * u[2], o[1] + r[3] * u[0] + r[4] * u[1] + r[5] * u[2], o[2] + r[6] * u[0] + r[7] * u[1] + r[8] * u[2]);
      const faces = [];
      for (let axis = 0; axis < 3; axis++) {
        for (const side of [-1, 1]) {
          const [b, c] = [(axis + 1) % 3, (axis + 2) % 3];
          const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([p, q]) => { const u = [0, 0, 0]; u[axis] = side * half[axis]; u[b] = p * half[b]; u[c] = q * half[c]; return corner(u); });
          faces.push([corners.reduce((sum, p) => sum + p[2], 0), corners, axis]);
        }
      }
      const axes = [0, 1, 2].map((axis) => { const u = [0, 0, 0]; u[axis] = long; const p = corner(u); return [p[2] > 0 ? 99 : -99, p, axis]; });
      const origin = see(...o);
      for (const [depth, what, axis] of [...faces, ...axes].sort((a, b) => a[0] - b[0])) {
        pen.strokeStyle = colours[axis]; pen.lineWidth = 2.5;
        pen.beginPath();
        if (Math.abs(depth) === 99) {
          pen.moveTo(origin[0], origin[1]); pen.lineTo(what[0], what[1]); pen.stroke();
          pen.fillStyle = colours[axis]; pen.font = "600 12px system-ui, sans-serif"; pen.fillText(String(axis + 1), what[0] + 5, what[1] + 4);
          continue;
        }
        what.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](p[0], p[1]));
        pen.closePath(); pen.globalAlpha = 0.62; pen.fillStyle = colours[axis]; pen.fill(); pen.globalAlpha = 1; pen.strokeStyle = ink.card; pen.lineWidth = 1; pen.stroke();
      }
    }
  }
}
