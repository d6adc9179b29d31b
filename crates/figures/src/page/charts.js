// Charts, all drawn by plotly.js. Those over time share their range and show the time of the motion.

const MARKERS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const charts = [];
let linking = false;

function axisLayout(axis) {
  const layout = {
    title: { text: escaped(axis.label), standoff: 8 }, type: axis.log ? "log" : "linear", gridcolor: colour("--grid"),
    linecolor: colour("--line"), zeroline: false, automargin: true, exponentformat: "power", showexponent: "all",
    ticks: "outside", tickcolor: colour("--line"), ticklen: 4, nticks: 8,
  };
  return layout;
}

// Lowest value to be shown: far below round-off there is nothing to be seen, but it would fill a logarithmic axis.
function lowest(chart) {
  const levels = chart.levels || [];
  if (!levels.length) return undefined;
  const floor = Math.min(...levels.map((level) => level.y)) / 300;
  return chart.curves.some((curve) => curve.y.some((y) => y > 0 && y < floor)) ? floor : undefined;
}

// An invisible trace that makes room for a decade on each side of the levels.
function room(chart) {
  const levels = (chart.levels || []).map((level) => level.y), first = chart.curves.find((curve) => curve.x.length);
  if (!chart.y.log || !levels.length || !first) return [];
  return [{ x: [first.x[0], first.x[0]], y: [Math.min(...levels) / 10, Math.max(...levels) * 10], mode: "markers", marker: { opacity: 0 }, hoverinfo: "skip", showlegend: false }];
}

const hasWebGl = (() => { try { return !!document.createElement("canvas").getContext("webgl", { failIfMajorPerformanceCaveat: true }); } catch { return false; } })();

// Escape text that plotly would otherwise read as markup.
function escaped(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function chartLayout(chart) {
  const narrow = window.innerWidth < 560;
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("--ink"), size: narrow ? 11 : 12, family: "inherit" },
    margin: { l: 58, r: narrow ? 10 : 30, t: 12, b: 44 }, xaxis: axisLayout(chart.x), yaxis: axisLayout(chart.y),
    legend: { orientation: "h", x: 0, y: 1.01, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)", itemwidth: 30 },
    modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: colour("--line"), activecolor: colour("--accent") },
    showlegend: chart.traces.filter((trace) => trace.showlegend !== false).length > 1, hovermode: "closest",
    hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: colour("--ink") } }, dragmode: "zoom", bargap: 0.04,
    uirevision: chart.revision, shapes: [], annotations: [],
  };
  if (chart.equal) { layout.yaxis.scaleanchor = "x"; layout.yaxis.scaleratio = 1; }
  const least = chart.y.log && lowest(chart);
  if (least) layout.yaxis.autorangeoptions = { minallowed: Math.log10(least) };
  for (const level of chart.levels || []) {
    const ink = level.colour === null ? colour("--soft") : curveColour(level.colour);
    layout.shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: level.y, y1: level.y, line: { color: ink, width: 1.2, dash: "dot" } });
    if (!level.name) continue;
    layout.annotations.push({
      xref: "paper", x: 1, xanchor: "right", yref: "y", y: chart.y.log ? Math.log10(level.y) : level.y, yanchor: "bottom", showarrow: false,
      text: escaped(level.name), font: { size: 10.5, color: ink },
    });
  }
  return layout;
}

function trace(curve) {
  const ink = curveColour(curve.colour);
  const base = {
    name: escaped(curve.name), x: curve.x, y: curve.y, type: curve.x.length > 6000 && hasWebGl ? "scattergl" : "scatter", legendgroup: curve.name, connectgaps: false,
    showlegend: curve.style !== "faint" && curve.name !== "", hovertemplate: `%{x:.6~g}, %{y:.4~g}<extra>${escaped(curve.name)}</extra>`,
  };
  if (curve.style === "bars") {
    const many = curve.x.length > 1;
    return { ...base, type: "bar", width: many ? curve.widths : undefined, marker: { color: ink, line: { width: 0 } }, opacity: 0.85 };
  }
  const line = { color: ink, width: curve.style === "faint" ? 0.7 : curve.x.length > 4000 ? 1 : 2, shape: curve.smooth ? "spline" : "linear", dash: DASHES[Math.floor(curve.colour / COLOURS) % DASHES.length] };
  if (curve.style === "faint") return { ...base, mode: "lines", line, opacity: 0.3, hoverinfo: "skip", hovertemplate: undefined };
  if (curve.style === "line") return { ...base, mode: "lines", line };
  const symbol = MARKERS[curve.colour % MARKERS.length];
  const open = curve.bounds && curve.bounds.length ? curve.bounds.map((bound) => (bound ? `${symbol}-open` : symbol)) : symbol;
  const marker = { color: ink, symbol: open, size: curve.style === "points" ? (curve.x.length > 3000 ? 2.5 : curve.x.length > 400 ? 3.5 : 6) : 9, line: { width: 1.5, color: ink } };
  return { ...base, mode: curve.style === "points" ? "markers" : "lines+markers", marker, line: { ...line, width: 1.6 } };
}

// The colours of a map: one hue where all numbers have one sign, two about 0.
function heat({ name, x, y, values, range }) {
  const rows = Array.from(y, (_, k) => values.subarray(k * x.length, (k + 1) * x.length));
  const both = range[0] < 0 && range[1] > 0;
  return [{
    type: "heatmap", x, y, z: rows, zmin: range[0], zmax: range[1], colorscale: both ? "RdBu" : "Viridis", reversescale: both, zsmooth: false, showlegend: false,
    colorbar: { thickness: 12, outlinewidth: 0, tickfont: { color: colour("--ink") }, title: { text: escaped(name), side: "right", font: { color: colour("--ink") } } },
    hovertemplate: `%{x:.6~g}, %{y:.6~g}: %{z:.4~g}<extra>${escaped(name)}</extra>`,
  }];
}

// A chart in a panel. `chart` has x, y, curves, levels, equal, note; `show` may replace it.
class ChartView {
  constructor(host, onSeek) {
    this.host = host;
    new ResizeObserver(() => { if (host.data) Promise.resolve(Plotly.Plots.resize(host)).then(() => this.place()); }).observe(host);
    this.onSeek = onSeek;
    this.cursor = element("div", { class: "mark cursor", hidden: "" });
    this.dots = [];
    charts.push(this);
  }

  async show(chart) {
    this.chart = chart;
    chart.traces = [...(chart.map ? heat(chart.map) : []), ...chart.curves.map(trace), ...room(chart)];
    const first = !this.host.data;
    this.host.setAttribute("role", "img");
    this.host.setAttribute("aria-label", [chart.title, chart.note].filter(Boolean).join(". "));
    const config = { displaylogo: false, scrollZoom: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], displayModeBar: window.innerWidth >= 560 && "hover" };
    await Plotly.react(this.host, chart.traces, chartLayout(chart), config);
    this.host.append(this.cursor, ...this.dots);
    if (!first) return;
    this.host.on("plotly_relayout", (change) => { this.follow(change); this.place(); });
    this.host.on("plotly_click", (event) => { if (this.chart.x.time) this.onSeek(event.points[0].x); else if (this.chart.times) this.onSeek(this.chart.times[event.points[0].pointNumber]); });
  }

  restyle() { if (this.chart) this.show(this.chart); }

  // Set the range of time that was chosen here in all other charts.
  follow(change) {
    if (linking || !this.chart.x.time) return;
    const range = change["xaxis.autorange"] ? null : change["xaxis.range"] || ("xaxis.range[0]" in change ? [change["xaxis.range[0]"], change["xaxis.range[1]"]] : undefined);
    if (range === undefined) return;
    linking = true;
    const others = charts.filter((other) => other !== this && other.chart && other.chart.x.time && other.host.data);
    Promise.all(others.map((other) => Plotly.relayout(other.host, range ? { "xaxis.range": [...range] } : { "xaxis.autorange": true }))).finally(() => { linking = false; });
  }

  // Show the time of the motion: a line over time, otherwise a dot on each curve with times.
  at(t) { this.t = t; this.place(); }

  place() {
    const full = this.host._fullLayout;
    if (!full || !full.xaxis || this.t === undefined) return;
    const { xaxis, yaxis } = full;
    const inside = (px, axis) => px >= -1 && px <= axis._length + 1;
    if (this.chart.x.time) {
      const px = xaxis.d2p(this.t);
      this.cursor.hidden = !inside(px, xaxis);
      Object.assign(this.cursor.style, { left: `${xaxis._offset + px}px`, top: `${yaxis._offset}px`, height: `${yaxis._length}px` });
      return;
    }
    this.cursor.hidden = true;
    const current = this.chart.current || [];
    while (this.dots.length < current.length) {
      const dot = element("div", { class: "mark dot", hidden: "" });
      this.dots.push(dot);
      this.host.append(dot);
    }
    this.dots.forEach((dot, k) => {
      const point = current[k] && current[k](this.t);
      const px = point && xaxis.d2p(point[0]), py = point && yaxis.d2p(point[1]);
      dot.hidden = !point || !inside(px, xaxis) || !inside(py, yaxis);
      if (!dot.hidden) Object.assign(dot.style, { left: `${xaxis._offset + px}px`, top: `${yaxis._offset + py}px`, background: curveColour(k) });
    });
  }
}
