// What a model draws: lines, spheres, boxes, arrows, surfaces, whose places are numbers in every frame.

// Scale of colours from least to largest, which readers who see no red or green can tell apart (viridis, at five places).
const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function scaled(share) {
  const at = Math.max(0, Math.min(1, share)) * (SCALE.length - 1), k = Math.min(SCALE.length - 2, Math.floor(at)), s = at - k;
  return `rgb(${SCALE[k].map((low, c) => Math.round(low + s * (SCALE[k + 1][c] - low))).join(",")})`;
}

// Facets of a cylinder around its axis.
const FACETS = 18;

// A ball with a light on it.
function ballOf(pen, x, y, radius, paint) {
  pen.beginPath();
  pen.arc(x, y, Math.max(0.5, radius), 0, 7);
  pen.fillStyle = paint;
  pen.fill();
  if (radius < 3) return;
  const light = pen.createRadialGradient(x - radius * 0.4, y - radius * 0.4, radius * 0.1, x, y, radius);
  light.addColorStop(0, "rgba(255,255,255,0.65)"); light.addColorStop(0.5, "rgba(255,255,255,0.05)"); light.addColorStop(1, "rgba(0,0,0,0.28)");
  pen.fillStyle = light;
  pen.fill();
}

class Forms {
  // Forms of a motion, with their numbers in a buffer.
  constructor(motion, buffer) {
    this.all = motion.drawn;
    this.flat = motion.dimension === 2;
    for (const form of this.all) {
      for (const given of [...form.arguments, ...(form.shades ? [form.shades] : [])]) given.values = numbers(buffer, given.values);
      form.first = []; // number of the first point of each member
      form.points.reduce((sum, count) => (form.first.push(sum), sum + count), 0);
      if (form.shades) form.range = form.shades.values.reduce(([a, b], x) => (Number.isFinite(x) ? [Math.min(a, x), Math.max(b, x)] : [a, b]), [Infinity, -Infinity]);
    }
  }

  // Numbers of an argument from `first` on, in a frame or between two.
  at({ width, values }, first, frame, share, out) {
    if (values.length > width) return cubic(values, width, first, frame, share, out);
    for (let c = 0; c < out.length; c++) out[c] = values[first + c];
    return out;
  }

  // Gives all places to `take`, for the box around everything; what has a size adds it.
  measure(take) {
    const add = ({ values }, reach = 0) => values.forEach((x, k) => { take(x - reach, k % 3); take(x + reach, k % 3); });
    const largest = ({ values }) => values.reduce((a, x) => (Number.isFinite(x) ? Math.max(a, Math.abs(x)) : a), 0);
    for (const { form, arguments: list } of this.all) {
      const [a, b, c] = list;
      if (form === "sphere") add(a, largest(b));
      else if (form === "box") add(b, (Math.hypot(1, 1, this.flat ? 0 : 1) * largest(c)) / 2);
      else if (form === "cylinder") [a, b].forEach((end) => add(end, largest(c)));
      else if (form === "arrow") {
        const count = Math.max(a.values.length, b.values.length);
        add(a);
        for (let k = 0; k < count; k++) take(a.values[k % a.values.length] + b.values[k % b.values.length], k % 3);
      } else list.forEach((numbers) => add(numbers));
    }
  }

  // Tracks that are drawn as trails: where they are in a frame, and their colours.
  tracks(colours) {
    const found = [];
    this.all.forEach((form, k) => {
      if (form.form !== "trail") return;
      form.points.forEach((_, member) => found.push({ at: (frame, share, out) => this.at(form.arguments[0], 3 * member, frame, share, out), paint: form.colour || colours[(k + member) % COLOURS] }));
    });
    return found;
  }

  // What is to be painted between two frames, with its depth.
  pieces(frame, share, { see, size }, colours, ink) {
    const pieces = [], point = [0, 0, 0];
    this.all.forEach((form, k) => {
      const [first, second, third] = form.arguments, value = [0];
      const place = (numbers, at) => { const [x, y, z] = this.at(numbers, 3 * at, frame, share, point); return see(x, y, z); };
      const plain = form.form === "line" || form.form === "polyline" ? ink.soft : colours[k % COLOURS];
      form.points.forEach((count, member) => {
        const paint = form.range ? scaled((this.at(form.shades, member, frame, share, value)[0] - form.range[0]) / (form.range[1] - form.range[0] || 1)) : form.colour || plain;
        let labelled = null, beside = 6;
        if (form.form === "sphere") {
          const p = place(first, member), radius = this.at(second, member, frame, share, value)[0] * size;
          pieces.push([p[2], (pen) => ballOf(pen, p[0], p[1], radius, paint)]);
          [labelled, beside] = [p, radius + 5];
        } else if (form.form === "line") {
          const a = place(first, member), b = place(second, member);
          pieces.push([Math.min(a[2], b[2]), (pen) => stroke(pen, [a, b], paint, 2.5)]);
          labelled = a.map((x, c) => (x + b[c]) / 2);
        } else if (form.form === "polyline") {
          const through = [];
          // The points of a range, or one of each argument.
          if (form.arguments.length > 1) form.arguments.forEach((numbers) => through.push(place(numbers, member)));
          else for (let j = 0; j < count; j++) through.push(place(first, form.first[member] + j));
          pieces.push([mean(through), (pen) => stroke(pen, through, paint, 2)]);
          labelled = through[0];
        } else if (form.form === "arrow") {
          const a = place(first, member), from = [...point], v = this.at(second, 3 * member, frame, share, [0, 0, 0]);
          const b = see(from[0] + v[0], from[1] + v[1], from[2] + v[2]);
          pieces.push([Math.max(a[2], b[2]), (pen) => arrow(pen, a, b, paint)]);
          labelled = b;
        } else if (form.form === "box") {
          const r = this.at(first, 9 * member, frame, share, new Array(9)), o = [...this.at(second, 3 * member, frame, share, point)];
          const sides = this.at(third, 3 * member, frame, share, [0, 0, 0]);
          pieces.push(...this.box(r, o, sides, see, paint));
          labelled = see(...o);
        } else if (form.form === "cylinder") {
          const a = [...this.at(first, 3 * member, frame, share, point)], b = [...this.at(second, 3 * member, frame, share, point)];
          pieces.push(...cylinder(a, b, this.at(third, member, frame, share, value)[0], see, paint));
          labelled = see(...a.map((x, c) => (x + b[c]) / 2));
        } else if (form.form === "surface") {
          const seen = Array.from({ length: count }, (_, j) => place(first, form.first[member] + j));
          pieces.push(...net(seen, paint));
        }
        const label = form.labels[member], spot = labelled || (form.form === "trail" ? place(first, member) : null);
        if (label && spot) pieces.push([Infinity, (pen) => write(pen, label, spot[0] + beside, spot[1] - 5, ink)]);
      });
    });
    return pieces.filter(([depth]) => !Number.isNaN(depth));
  }

  // Faces of a box that are turned to the eye.
  box(r, o, sides, see, paint) {
    const corner = (u) => see(...[0, 1, 2].map((i) => o[i] + (r[3 * i] * u[0] * sides[0] + r[3 * i + 1] * u[1] * sides[1] + r[3 * i + 2] * u[2] * sides[2]) / 2));
    if (this.flat) return [[0, (pen) => face(pen, [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]].map(corner), paint, 0)]];
    const faces = [];
    for (let axis = 0; axis < 3; axis++) {
      for (const side of [-1, 1]) {
        const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([p, q]) => { const u = [0, 0, 0]; u[axis] = side; u[(axis + 1) % 3] = p; u[(axis + 2) % 3] = q; return corner(u); });
        faces.push([mean(corners), (pen) => face(pen, corners, paint, [0.25, 0.12, 0][axis])]);
      }
    }
    return faces;
  }
}

const mean = (points) => points.reduce((sum, p) => sum + p[2], 0) / points.length;

function stroke(pen, points, paint, width) {
  pen.strokeStyle = paint; pen.lineWidth = width; pen.lineJoin = "round";
  pen.beginPath();
  points.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](p[0], p[1]));
  pen.stroke();
}

// A polygon in a colour, darker by a part, with thin edges.
function face(pen, corners, paint, dark) {
  pen.beginPath();
  corners.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](p[0], p[1]));
  pen.closePath();
  pen.fillStyle = paint; pen.fill();
  if (dark) { pen.fillStyle = `rgba(0,0,0,${dark})`; pen.fill(); }
  pen.strokeStyle = "rgba(0,0,0,0.35)"; pen.lineWidth = 0.7; pen.stroke();
}

function arrow(pen, a, b, paint) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(dx, dy);
  if (!(length > 0.5)) return;
  const head = Math.min(13, 0.45 * length), [ux, uy] = [dx / length, dy / length], base = [b[0] - head * ux, b[1] - head * uy];
  stroke(pen, [a, [base[0], base[1]]], paint, 2.4);
  pen.fillStyle = paint;
  pen.beginPath(); pen.moveTo(b[0], b[1]); pen.lineTo(base[0] - 0.4 * head * uy, base[1] + 0.4 * head * ux); pen.lineTo(base[0] + 0.4 * head * uy, base[1] - 0.4 * head * ux); pen.closePath(); pen.fill();
}

// Facets and ends of a cylinder between two points.
function cylinder(a, b, radius, see, paint) {
  const axis = b.map((x, k) => x - a[k]), length = Math.hypot(...axis);
  if (!(length > 0)) return [];
  const w = axis.map((x) => x / length), least = w.map(Math.abs).indexOf(Math.min(...w.map(Math.abs)));
  const unit = [0, 0, 0]; unit[least] = 1;
  const cross = (p, q) => [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]];
  let u = cross(w, unit); const size = Math.hypot(...u); u = u.map((x) => x / size);
  const v = cross(w, u), ring = (o) => Array.from({ length: FACETS }, (_, k) => { const c = Math.cos((2 * Math.PI * k) / FACETS) * radius, s = Math.sin((2 * Math.PI * k) / FACETS) * radius; return see(...o.map((x, i) => x + c * u[i] + s * v[i])); });
  const [low, high] = [ring(a), ring(b)];
  const smooth = (corners, dark) => [mean(corners), (pen) => { pen.beginPath(); corners.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](p[0], p[1])); pen.closePath(); pen.fillStyle = paint; pen.fill(); pen.strokeStyle = paint; pen.lineWidth = 0.6; pen.stroke(); if (dark) { pen.fillStyle = `rgba(0,0,0,${dark})`; pen.fill(); } }];
  const facets = low.map((p, k) => { const j = (k + 1) % FACETS; return smooth([p, low[j], high[j], high[k]], 0.16 * (1 + Math.cos((2 * Math.PI * k) / FACETS))); });
  return [...facets, [mean(low), (pen) => face(pen, low, paint, 0.1)], [mean(high), (pen) => face(pen, high, paint, 0.1)]];
}

// Meshes of a surface whose points stand in a square, row after row, lighter where they face the eye.
function net(seen, paint) {
  const side = Math.round(Math.sqrt(seen.length)), found = [];
  for (let i = 0; i + 1 < side; i++) {
    for (let j = 0; j + 1 < side; j++) {
      const corners = [seen[i * side + j], seen[i * side + j + 1], seen[(i + 1) * side + j + 1], seen[(i + 1) * side + j]];
      const [a, b] = [corners[2].map((x, k) => x - corners[0][k]), corners[3].map((x, k) => x - corners[1][k])];
      found.push([mean(corners), (pen) => { pen.globalAlpha = 0.5; face(pen, corners, paint, 0.3 * (1 - facing(a, b))); pen.globalAlpha = 1; }]);
    }
  }
  return found;
}

// Cosine of the angle between the line of sight and the normal of two diagonals; 1 in the plane.
function facing(a, b) {
  const n = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], size = Math.hypot(...n);
  return size > 0 ? Math.abs(n[2]) / size : 1;
}

function write(pen, text, x, y, ink) {
  pen.font = "600 12px system-ui, sans-serif";
  pen.lineWidth = 3; pen.strokeStyle = ink.card; pen.lineJoin = "round";
  pen.strokeText(text, x, y);
  pen.fillStyle = ink.ink; pen.fillText(text, x, y);
}
