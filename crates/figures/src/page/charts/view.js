// A chart in a panel, on a canvas of its own. Charts over time share their range, and show the time of the motion.

const charts = [];
// Range of time that is chosen in all charts over time; null for all of each.
let chosenTime = null;

class ChartView {
  constructor(host, onSeek) {
    Object.assign(this, { host, onSeek, ranges: { x: null, y: null }, off: new Set(), dots: [] });
    this.canvas = element("canvas", { tabindex: "0", role: "img", "aria-description": "Plus and minus zoom, Shift with an arrow moves, 0 shows all." });
    this.legend = element("div", { class: "legend", role: "group", "aria-label": "Curves" });
    this.cursor = element("div", { class: "mark cursor", hidden: "" });
    this.box = element("div", { class: "mark zoom", hidden: "" });
    this.ring = element("div", { class: "mark ring", hidden: "" });
    this.reading = element("div", { class: "mark reading", hidden: "" });
    this.whole = element("button", { class: "whole", type: "button", text: "show all", hidden: "", onclick: () => this.zoom(null, null) });
    this.area = element("div", { class: "area" }, this.canvas, this.cursor, this.box, this.ring, this.reading, this.whole);
    host.append(this.legend, this.area);
    listen(this);
    new ResizeObserver(() => this.draw()).observe(this.area);
    charts.push(this);
  }

  // Show a chart, which has x, y, curves, levels, map, equal, note. A chart of the same `revision` keeps what was zoomed to.
  show(chart) {
    const same = this.chart && chart.revision && chart.revision === this.chart.revision;
    if (!same) this.ranges = { x: null, y: null };
    this.chart = chart;
    this.host.setAttribute("role", "group");
    const label = [chart.title, chart.note].filter(Boolean).join(". ");
    for (const named of [this.host, this.canvas]) named.setAttribute("aria-label", label);
    this.name();
    this.draw();
  }

  restyle() { if (this.chart) this.draw(); }

  // Legend: a button for each name, which shows its curves or leaves them out; a double click leaves out all others.
  name() {
    const named = new Map();
    for (const curve of this.chart.curves) if (curve.name && curve.style !== "faint" && !named.has(curve.name)) named.set(curve.name, curve);
    for (const name of this.off) if (!named.has(name)) this.off.delete(name);
    this.legend.hidden = named.size < 2;
    const names = named.size < 2 ? [] : [...named.keys()];
    const set = (off) => { this.off = new Set(off); [...this.legend.children].forEach((button, k) => button.setAttribute("aria-pressed", String(!this.off.has(names[k])))); this.draw(); };
    const flip = (name) => set(this.off.has(name) ? [...this.off].filter((other) => other !== name) : [...this.off, name]);
    const alone = (name) => set(this.off.size === names.length - 1 && !this.off.has(name) ? [] : names.filter((other) => other !== name));
    this.legend.replaceChildren(...names.map((name) => {
      const button = element("button", { type: "button", "aria-pressed": String(!this.off.has(name)), title: "Double click for this one alone", onclick: () => flip(name), ondblclick: () => alone(name) });
      button.append(sample(named.get(name)), name);
      return button;
    }));
  }

  // Curves that are not left out.
  curves() { return this.chart.curves.filter((curve) => !this.off.has(curve.name)); }

  // Set the ranges of coordinates that are shown; null for all.
  zoom(x, y) {
    this.ranges = { x, y };
    if (this.chart.x.time) {
      chosenTime = x;
      for (const view of charts) if (view.chart && view.chart.x.time) view.draw();
    } else this.draw();
  }

  range(name) {
    const chosen = name === "x" && this.chart.x.time ? chosenTime : this.ranges[name];
    return chosen || (name === "x" ? wholeAcross(this.chart, this.curves()) : wholeUp(this.chart, this.curves()));
  }

  draw() {
    const { canvas, area, chart } = this, width = area.clientWidth, height = area.clientHeight, ratio = (window.devicePixelRatio || 1) * (this.printed ? 3 : 1);
    if (!chart || !width || !height) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const ends = { x: this.range("x"), y: this.range("y") };
    this.frame = frameOf(pen, chart, ends, width, height, getComputedStyle(this.host).fontFamily);
    const { plot, scales } = this.frame;
    this.drawn = this.curves().map((curve) => places(curve, scales));
    drawGrid(pen, this.frame);
    pen.save();
    pen.beginPath();
    pen.rect(plot.left, plot.top, plot.width, plot.height);
    pen.clip();
    if (chart.map) drawMap(pen, chart.map, scales, plot, ratio);
    for (const drawn of this.drawn) drawCurve(pen, drawn, scales, curveColour(drawn.curve.colour));
    pen.restore();
    drawLevels(pen, this.frame, chart.levels || []);
    drawAxes(pen, this.frame);
    this.whole.hidden = !(this.ranges.x || this.ranges.y || (chart.x.time && chosenTime));
    this.whole.style.top = `${plot.top + 4}px`;
    this.whole.style.right = `${width - plot.left - plot.width + 4}px`;
    this.read(null);
    this.place();
  }

  // True if a pixel lies in the plot, or on its border.
  inside(px, py) {
    const { left, top, width, height } = this.frame.plot;
    return px >= left - 1 && px <= left + width + 1 && py >= top - 1 && py <= top + height + 1;
  }

  // Point that is nearest to a pixel, within reach: { x, y, k, value, name, text }.
  nearest(px, py) {
    const { chart, drawn, frame: { scales } } = this;
    if (!this.inside(px, py)) return null;
    let best = null, least = 40;
    for (const { curve, px: xs, py: ys } of drawn) {
      if (curve.style === "faint") continue;
      const half = curve.style === "bars" ? halfBar(curve, scales.x) * Math.abs(scales.x.slope) : 0;
      for (let k = 0; k < xs.length; k++) {
        const dx = Math.abs(xs[k] - px), inBar = half && dx <= half && (py >= ys[k] || dx === 0);
        const distance = inBar ? 0 : dx < least ? Math.hypot(dx, ys[k] - py) : Infinity;
        if (distance < least && (inBar || this.inside(xs[k], ys[k]))) { least = distance; best = { curve, k, x: xs[k], y: ys[k] }; }
      }
    }
    if (best) {
      const { curve, k } = best;
      return { ...best, value: curve.x[k], name: curve.name, text: `${readable(curve.x[k], 6)}, ${readable(curve.y[k], 4)}` };
    }
    if (!chart.map) return null;
    const { map } = chart, at = [cellOf(borders(map.x), scales.x.value(scales.x.coordinateAt(px))), cellOf(borders(map.y), scales.y.value(scales.y.coordinateAt(py)))];
    if (at.some((k) => k < 0)) return null;
    const text = `${readable(map.x[at[0]], 6)}, ${readable(map.y[at[1]], 6)}: ${readable(map.values[at[1] * map.x.length + at[0]], 4)}`;
    return { x: px, y: py, value: map.x[at[0]], k: at[0], name: map.name, text };
  }

  // Show the numbers of a point beside it, or nothing.
  read(point) {
    this.ring.hidden = !point || !point.curve;
    this.reading.hidden = !point;
    if (!point) return;
    this.reading.textContent = [point.name, point.text].filter(Boolean).join("\n");
    if (point.curve) Object.assign(this.ring.style, { left: `${point.x}px`, top: `${point.y}px`, borderColor: curveColour(point.curve.colour) });
    const { clientWidth: width, clientHeight: height } = this.area, { offsetWidth: own, offsetHeight: tall } = this.reading;
    const left = point.x + 12 + own <= width ? point.x + 12 : Math.max(0, point.x - 12 - own);
    Object.assign(this.reading.style, { left: `${left}px`, top: `${Math.max(0, Math.min(height - tall, point.y - tall - 8))}px` });
  }

  // Go to the time of a point.
  seek(point) {
    if (!point) return;
    if (this.chart.x.time) this.onSeek(point.value); else if (this.chart.times) this.onSeek(this.chart.times[point.k]);
  }

  // Show the time of the motion: a line over time, otherwise a dot on each curve with times.
  at(t) { this.t = t; this.place(); }

  place() {
    if (!this.frame || this.t === undefined) return;
    const { plot, scales } = this.frame;
    const time = this.chart.x.time && scales.x.pixel(this.t);
    this.cursor.hidden = !this.chart.x.time || !this.inside(time, plot.top);
    if (!this.cursor.hidden) Object.assign(this.cursor.style, { left: `${time}px`, top: `${plot.top}px`, height: `${plot.height}px` });
    const current = this.chart.x.time ? [] : this.chart.current || [];
    while (this.dots.length < current.length) {
      const dot = element("div", { class: "mark dot", hidden: "" });
      this.dots.push(dot);
      this.area.append(dot);
    }
    this.dots.forEach((dot, k) => {
      const point = current[k] && current[k](this.t), at = point ? [scales.x.pixel(point[0]), scales.y.pixel(point[1])] : [NaN, NaN];
      dot.hidden = !this.inside(...at) || this.off.has(this.chart.curves[k].name);
      if (!dot.hidden) Object.assign(dot.style, { left: `${at[0]}px`, top: `${at[1]}px`, background: curveColour(k) });
    });
  }
}

// A piece of a curve beside its name in the legend.
function sample(curve) {
  const ink = `var(--c${curve.colour % COLOURS})`, parts = [];
  const svg = (name, attributes) => { const made = document.createElementNS("http://www.w3.org/2000/svg", name); for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value); return made; };
  if (curve.style === "bars") parts.push(svg("path", { d: "M8 0h12v12h-12z", fill: ink }));
  if (hasLine(curve)) parts.push(svg("path", { d: "M0 6h28", stroke: ink, "stroke-width": 2, "stroke-dasharray": dashOf(curve).join(" ") || "none" }));
  if (hasPoints(curve)) parts.push(svg("path", { d: markerOf(curve), fill: ink, transform: "translate(14 6) scale(4.2)" }));
  const made = svg("svg", { width: 28, height: 12, viewBox: "0 0 28 12", "aria-hidden": "true" });
  made.append(...parts);
  return made;
}
