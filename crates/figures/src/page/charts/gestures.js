// Gestures on a chart: a dragged box is zoomed to; Shift with dragging moves; Ctrl with the wheel zooms; a double click shows
// all; a click goes to a time. A finger moves along the horizontal axis, as up and down it moves the page; two fingers move
// and zoom.

// Pixels below which a drag is a click, and a box is a strip along one axis.
const CLICK = 4, STRIP = 14;

// Range about a coordinate that is larger by a factor, or null where numbers no longer tell its ends apart.
function scaledRange([low, high], about, factor) { return usable([about + (low - about) * factor, about + (high - about) * factor]); }

function usable([low, high]) {
  const fits = Number.isFinite(low) && Number.isFinite(high) && high / 2 - low / 2 > Math.max(10 * Number.EPSILON * Math.max(Math.abs(low), Math.abs(high)), 1e-300);
  return fits ? [low, high] : null;
}

// Ranges of a chart that are moved by pixels.
function movedRanges({ scales: { x, y } }, dx, dy) {
  return [usable(x.ends.map((end) => end - dx / x.slope)), usable(y.ends.map((end) => end - dy / y.slope))];
}

// Ranges of the box between two pixels; an axis along which it is a strip stays as it was.
function boxedRanges({ scales, plot }, from, to) {
  const within = (value, start, length) => Math.max(start, Math.min(start + length, value));
  const across = [from[0], to[0]].map((px) => within(px, plot.left, plot.width)), up = [from[1], to[1]].map((py) => within(py, plot.top, plot.height));
  const range = (scale, pixels, other) => (Math.abs(pixels[0] - pixels[1]) < STRIP && Math.abs(other[0] - other[1]) >= STRIP ? null : usable(pixels.map((px) => scale.coordinateAt(px)).sort((a, b) => a - b)));
  return { x: range(scales.x, across, up), y: range(scales.y, up, across), across, up };
}

function listen(view) {
  const { canvas } = view, held = new Map();
  let start = null, before = null, drag = false, shift = false, touch = false, spread = 0;
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const kept = () => [view.chart.x.time ? chosenTime : view.ranges.x, view.ranges.y];
  const scale = (factor, [px, py]) => {
    const { x, y } = view.frame.scales, ranges = [scaledRange(x.ends, x.coordinateAt(px), factor), scaledRange(y.ends, y.coordinateAt(py), factor)];
    if (ranges[0] && ranges[1]) view.zoom(...ranges);
  };
  const move = (dx, dy) => { const ranges = movedRanges(view.frame, dx, dy); if (ranges[0] && ranges[1]) view.zoom(dx ? ranges[0] : kept()[0], dy ? ranges[1] : kept()[1]); };
  const middle = () => { const { plot } = view.frame; return [plot.left + plot.width / 2, plot.top + plot.height / 2]; };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button || !view.frame) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, at(event));
    [start, before, drag, spread] = [at(event), at(event), held.size > 1, 0];
    touch = event.pointerType === "touch";
    shift = event.shiftKey || touch;
    view.read(null);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!view.frame) return;
    const here = at(event);
    if (!held.has(event.pointerId)) { view.read(view.nearest(...here)); return; }
    held.set(event.pointerId, here);
    if (held.size === 2) {
      const [a, b] = [...held.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]), centre = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
      if (spread && now) { move(centre[0] - before[0], centre[1] - before[1]); scale(spread / now, centre); }
      spread = now;
      before = centre;
      return;
    }
    drag = drag || Math.hypot(here[0] - start[0], here[1] - start[1]) >= CLICK;
    if (!drag) return;
    if (shift) { move(here[0] - before[0], touch ? 0 : here[1] - before[1]); before = here; return; }
    const { plot } = view.frame, { x, y, across, up } = boxedRanges(view.frame, start, here);
    const [left, right] = x ? across.sort((a, b) => a - b) : [plot.left, plot.left + plot.width], [top, bottom] = y ? up.sort((a, b) => a - b) : [plot.top, plot.top + plot.height];
    view.box.hidden = false;
    Object.assign(view.box.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!held.delete(event.pointerId) || held.size) return;
    view.box.hidden = true;
    const here = at(event);
    if (!drag) { const point = view.nearest(...here); view.read(point); view.seek(point); return; }
    if (shift || spread) return;
    const { x, y } = boxedRanges(view.frame, start, here), [wasX, wasY] = kept();
    if (x || y) view.zoom(x || wasX, y || wasY);
  });
  canvas.addEventListener("pointercancel", (event) => { held.delete(event.pointerId); view.box.hidden = true; });
  canvas.addEventListener("pointerleave", () => view.read(null));
  canvas.addEventListener("dblclick", () => view.zoom(null, null));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !view.frame) return;
    event.preventDefault();
    scale(Math.exp(event.deltaY * 0.003), at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (!view.frame || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 40, arrows = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    const act = event.shiftKey && arrows ? () => move(...arrows) : { "+": () => scale(1 / 1.25, middle()), "=": () => scale(1 / 1.25, middle()), "-": () => scale(1.25, middle()), 0: () => view.zoom(null, null) }[event.key];
    if (act) { event.preventDefault(); event.stopPropagation(); act(); }
  });
}
