// Frame of a chart: ranges of its data, margins, grid, axes and levels.

// Finite coordinates of curves on an axis that both axes can show, [least, largest].
function extent(chart, curves, name, least = -Infinity) {
  const log = { x: chart.x.log, y: chart.y.log };
  let low = Infinity, high = -Infinity;
  for (const curve of curves) {
    const own = curve[name], other = curve[name === "x" ? "y" : "x"], otherLog = log[name === "x" ? "y" : "x"];
    for (let k = 0; k < own.length; k++) {
      if (!Number.isFinite(own[k]) || !Number.isFinite(other[k]) || (log[name] && !(own[k] > 0)) || (otherLog && !(other[k] > 0)) || own[k] < least) continue;
      if (own[k] < low) low = own[k];
      if (own[k] > high) high = own[k];
    }
  }
  return log[name] ? [Math.log10(low), Math.log10(high)] : [low, high];
}

function joined([a, b], [c, d]) { return [Math.min(a, c), Math.max(b, d)]; }

// Range of all abscissae: points and bars have room at the ends, lines reach them.
function wholeAcross(chart, curves) {
  if (chart.map) { const edges = borders(chart.map.x); return padded(edges[0], edges[edges.length - 1], false, 0); }
  const [low, high] = extent(chart, curves, "x"), bars = curves.filter((curve) => curve.style === "bars" && curve.x.length);
  if (bars.length && low <= high) { const half = Math.max(...bars.map((curve) => halfBar(curve, new Scale(chart.x.log, [0, 1], 0, 1)))); return padded(low - half, high + half, chart.x.log, 0.01); }
  return padded(low, high, chart.x.log, curves.some(hasPoints) || !chart.x.time ? 0.04 : 0);
}

// Range of all ordinates: with a decade about the levels of a logarithmic axis, and without what lies far below all of them,
// as far below round-off there is nothing to be seen.
function wholeUp(chart, curves) {
  if (chart.map) { const edges = borders(chart.map.y); return padded(edges[0], edges[edges.length - 1], false, 0); }
  const { log } = chart.y, levels = log ? (chart.levels || []).map((level) => level.y).filter((y) => y > 0) : [], lowest = Math.min(...levels) / 300;
  let range = extent(chart, curves, "y", levels.length ? lowest : -Infinity);
  if (levels.length) range = joined(range, [Math.log10(Math.min(...levels)) - 1, Math.log10(Math.max(...levels)) + 1]);
  if (curves.some((curve) => curve.style === "bars") && !log) { range = joined(range, [0, 0]); const [low, high] = padded(...range, false, 0.06); return [range[0] === 0 ? 0 : low, range[1] === 0 ? 0 : high]; }
  return padded(...range, log, 0.06);
}

// Widen one of two ranges so that a unit has as many pixels on both axes.
function alikeScaled(ends, width, height) {
  const half = ([low, high]) => high / 2 - low / 2, unit = Math.max(half(ends.x) / width, half(ends.y) / height);
  const widened = (range, pixels) => { const extra = unit * pixels - half(range); return [range[0] - extra, range[1] + extra]; };
  return { x: widened(ends.x, width), y: widened(ends.y, height) };
}

// Text that is cut where it would be longer than its room.
function shortened(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 0 && pen.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return length ? `${text.slice(0, length)}…` : "";
}

// Margins, scales and ticks of a chart in a canvas. The ticks decide the margins, and these the ticks, so it is done twice.
function frameOf(pen, chart, ends, width, height, family) {
  const size = width < 480 ? 11 : 12, font = `${size}px ${family}`, line = size + 4;
  pen.font = font;
  const widest = (ticks) => Math.max(0, ...ticks.map((tick) => pen.measureText(tick.text).width));
  const frame = { font, line, size, width, height, chart };
  let left = 50, right = 14;
  const top = 10, bottom = 2 * line + 10;
  for (let pass = 0; pass < 2; pass++) {
    const plot = { left, top, width: Math.max(20, width - left - right), height: Math.max(20, height - top - bottom) };
    const { x: across, y: up } = chart.equal ? alikeScaled(ends, plot.width, plot.height) : ends;
    const scales = { x: new Scale(chart.x.log, across, plot.left, plot.left + plot.width), y: new Scale(chart.y.log, up, plot.top + plot.height, plot.top) };
    const y = fittingTicks(scales.y, Math.max(2, Math.round(plot.height / 40)), () => line);
    const x = fittingTicks(scales.x, Math.max(2, Math.round(plot.width / 80)), (text) => pen.measureText(text).width + 12);
    Object.assign(frame, { plot, scales, x, y });
    left = Math.ceil(widest(y.ticks)) + line + 16;
    const last = x.ticks.filter((tick) => tick.text).map((tick) => scales.x.pixelOf(tick.at) + pen.measureText(tick.text).width / 2 - plot.left - plot.width);
    right = Math.max(10, Math.ceil(Math.max(0, ...last)) + 4);
    if (chart.map) {
      frame.shade = colourScale(chart.map, plot);
      frame.shades = fittingTicks(frame.shade, Math.max(2, Math.round(plot.height / 40)), () => line);
      right = Math.max(right, 46 + line + Math.ceil(widest(frame.shades.ticks)));
    }
  }
  return frame;
}

function drawGrid(pen, { plot, scales, x, y }) {
  pen.strokeStyle = colour("--grid");
  pen.lineWidth = 1;
  pen.beginPath();
  for (const { at, text } of x.ticks) if (text) { const px = Math.round(scales.x.pixelOf(at)) + 0.5; pen.moveTo(px, plot.top); pen.lineTo(px, plot.top + plot.height); }
  for (const { at, text } of y.ticks) if (text) { const py = Math.round(scales.y.pixelOf(at)) + 0.5; pen.moveTo(plot.left, py); pen.lineTo(plot.left + plot.width, py); }
  pen.stroke();
}

function drawAxes(pen, { plot, scales, x, y, font, line, width, height, chart, shade, shades }) {
  const [right, bottom] = [plot.left + plot.width, plot.top + plot.height];
  pen.font = font;
  pen.strokeStyle = colour("--soft");
  pen.globalAlpha = 0.55;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(plot.left - 0.5, plot.top);
  pen.lineTo(plot.left - 0.5, bottom + 0.5);
  pen.lineTo(right, bottom + 0.5);
  for (const { at, text } of x.ticks) { const px = Math.round(scales.x.pixelOf(at)) + 0.5; pen.moveTo(px, bottom); pen.lineTo(px, bottom + (text ? 5 : 3)); }
  for (const { at, text } of y.ticks) { const py = Math.round(scales.y.pixelOf(at)) + 0.5; pen.moveTo(plot.left, py); pen.lineTo(plot.left - (text ? 5 : 3), py); }
  pen.stroke();
  pen.globalAlpha = 1;
  pen.fillStyle = colour("--ink");
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const { at, text } of x.ticks) pen.fillText(text, scales.x.pixelOf(at), bottom + 8);
  const middle = plot.left + plot.width / 2;
  pen.fillText(shortened(pen, labelFrom(chart.x.label, x.base), 2 * Math.min(middle, width - middle) - 4), middle, bottom + line + 8);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const { at, text } of y.ticks) pen.fillText(text, plot.left - 8, scales.y.pixelOf(at));
  turned(pen, labelFrom(chart.y.label, y.base), line / 2 + 2, plot.top + plot.height / 2, plot.height + plot.top, -1);
  if (!shade) return;
  drawColourScale(pen, chart.map, plot, right + 14, 12);
  pen.fillStyle = colour("--ink");
  pen.textAlign = "left";
  for (const { at, text } of shades.ticks) pen.fillText(text, right + 32, shade.pixelOf(at));
  turned(pen, labelFrom(chart.map.name, shades.base), width - line / 2 - 2, plot.top + plot.height / 2, plot.height + plot.top, 1);
}

// A text that is read upwards (-1) or downwards (1), about a place.
function turned(pen, text, x, y, room, way) {
  pen.save();
  pen.translate(x, y);
  pen.rotate((way * Math.PI) / 2);
  pen.textAlign = "center";
  pen.fillText(shortened(pen, text, room), 0, 0);
  pen.restore();
}

// Levels with their names, at the right where they do not cover each other.
function drawLevels(pen, { plot, scales, font, size }, levels) {
  const taken = [], card = colour("--card");
  pen.font = font;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const level of levels) {
    const y = scales.y.pixel(level.y), right = plot.left + plot.width;
    if (!(y >= plot.top && y <= plot.top + plot.height)) continue;
    pen.strokeStyle = pen.fillStyle = level.colour === null ? colour("--soft") : curveColour(level.colour);
    pen.lineWidth = 1.2;
    pen.setLineDash([2, 3]);
    pen.beginPath();
    pen.moveTo(plot.left, y);
    pen.lineTo(right, y);
    pen.stroke();
    pen.setLineDash([]);
    const places = [y - size * 0.7, y + size * 0.8].filter((at) => at - size / 2 > plot.top && at + size / 2 < plot.top + plot.height && taken.every((other) => Math.abs(other - at) >= size + 1));
    if (!level.name || !places.length) continue;
    taken.push(places[0]);
    const text = shortened(pen, level.name, plot.width - 8);
    // A border in the colour of the page keeps the name readable over curves.
    pen.strokeStyle = card;
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    pen.strokeText(text, right - 4, places[0]);
    pen.fillText(text, right - 4, places[0]);
  }
}
