// Parts of the page: panels, the player, the theme.

const motions = [];
let player = null;

function panel(title, ...tools) {
  const top = element("div", { class: "top" }, element("h3", { text: title }), element("div", { class: "tools" }, ...tools));
  return element("section", { class: "panel", "aria-label": title }, top);
}

// Choice of one of several: buttons if they are few, otherwise a list.
function choice(label, names, act) {
  if (names.length > 5) return element("select", { "aria-label": label, onchange: (event) => act(Number(event.target.value)) }, ...names.map((text, value) => element("option", { value, text })));
  const buttons = names.map((name, k) => element("button", { type: "button", text: name, "aria-pressed": String(k === 0), onclick: () => { buttons.forEach((b, j) => b.setAttribute("aria-pressed", String(j === k))); act(k); } }));
  return element("div", { class: "tools", role: "group", "aria-label": label }, ...buttons);
}

function seek(t) { if (player) player.seek(t); }

function chartsPanel({ charts: choices }, buffer) {
  for (const { chart } of choices) {
    for (const curve of chart.curves) { curve.x = numbers(buffer, curve.x); curve.y = numbers(buffer, curve.y); }
    if (chart.map) for (const name of ["x", "y", "values"]) chart.map[name] = numbers(buffer, chart.map[name]);
  }
  const host = element("div", { class: "plot" }), note = element("p", { class: "note" });
  const show = (k) => { note.textContent = choices[k].chart.note; heading.textContent = choices[k].chart.title; view.show(choices[k].chart); };
  const made = panel(choices[0].chart.title, choices.length > 1 && choice("What is drawn", choices.map((c) => c.name), show));
  const heading = made.querySelector("h3");
  made.append(host, note);
  const view = new ChartView(host, seek);
  return { made, start: () => show(0) };
}

// Panel of columns over each other, of one run or several, or of the points where a column passes a value upwards.
function explorerPanel({ title: heading, runs, presets }, buffer) {
  for (const run of runs) run.columns = new Map(run.columns.map(([name, array]) => [name, numbers(buffer, array)]));
  const names = [...new Set(runs.flatMap((run) => [...run.columns.keys()]))], time = names[0], motion = runs[0].motion;
  const labelled = (name) => { const run = runs.find((run) => run.units && run.units[name]); return run ? `${name} (${run.units[name]})` : name; };
  const select = (label, list) => element("select", { "aria-label": label, onchange: () => draw() }, ...list.map((name) => element("option", { value: name, text: name })));
  const preset = element("select", { "aria-label": "Choice of axes", onchange: () => { use(presets[preset.value]); draw(); } }, ...presets.map((p, k) => element("option", { value: k, text: p.name })));
  const x = select("Horizontal axis", names), y = select("Vertical axis", names), by = select("Section: column", ["no section", ...names.slice(1)]);
  const level = element("input", { type: "number", step: "any", value: "0", "aria-label": "Section: value", style: "width:5.5em", onchange: () => draw() });
  const levelLabel = element("label", {}, "passes", level);
  const made = panel(heading, presets.length > 1 && preset, element("label", {}, x, "↔", y), motion && by, motion && levelLabel);
  const host = element("div", { class: "plot" }), note = element("p", { class: "note" });
  made.append(host, note);
  const view = new ChartView(host, seek);
  const use = (p) => { x.value = p.x; y.value = p.y; by.value = p.section ? p.section[0] : "no section"; if (p.section) level.value = p.section[1]; };
  function draw() {
    const section = by.value !== "no section" && motion, curves = [], current = [];
    let thinned = 0, found = 0, strobe = "";
    runs.forEach((run, k) => {
      const [t, a, b] = [run.columns.get(time), run.columns.get(x.value), run.columns.get(y.value)];
      if (!a || !b) return;
      if (run.of > t.length) thinned = run.of;
      if (run.note) strobe = run.note;
      // Rows that are not neighbours are joined over time only.
      const curve = { name: runs.length > 1 ? run.name : "", colour: k, style: motion && run.joined && (x.value === time || run.of === t.length) ? "line" : "points", x: a, y: b, smooth: run.joined && run.of === t.length && t.length <= 2500 };
      if (section) {
        const passes = crossings(run, t, run.columns.get(by.value), Number(level.value), [a, b]);
        found += passes[0].length;
        Object.assign(curve, { style: "points", x: passes[0], y: passes[1] });
      } else if (motion && x.value !== time) {
        current.push((now) => { const [i, between] = locate(t, now), share = run.joined ? between : 0, j = Math.min(i + 1, t.length - 1); return [a[i] + share * (a[j] - a[i]), b[i] + share * (b[j] - b[i])]; });
      }
      curves.push(curve);
    });
    const title = section ? `${y.value} over ${x.value} where ${by.value} passes ${level.value} upwards` : `${y.value} over ${x.value}`;
    levelLabel.hidden = !section;
    note.textContent = [strobe, section && `${found} points where ${by.value} passes ${level.value} upwards, by cubic interpolation.`, thinned && (section ? `Only between neighbours among the rows shown, of ${thinned.toLocaleString("en")} samples: a run that records less (--record) shows all.` : `Of ${thinned.toLocaleString("en")} rows those with the extremes of every column in every stretch are shown.`)].filter(Boolean).join(" ");
    view.show({
      title, note: note.textContent, x: { label: labelled(x.value), log: false, time: motion && x.value === time && !section }, y: { label: labelled(y.value), log: false }, curves, levels: [],
      equal: x.value !== time && !section && alike(x.value, y.value), times: !section && runs[0].columns.get(time), current, revision: title,
    });
  }
  return { made, start: () => { if (presets.length) use(presets[0]); else { x.value = names[0]; y.value = names[1] || names[0]; } draw(); } };
}

// True if two columns are components of one quantity, so that one scale suits both.
function alike(a, b) {
  const stem = (name) => name.replace(/\.[xyz]$|\[[^\]]*\]$/, "");
  return a !== b && stem(a) === stem(b);
}

// Values of other columns where a column passes a value upwards between neighbouring samples, by the cubic through four
// rows if they are neighbours too.
function crossings(run, t, column, value, others) {
  const found = others.map(() => []), gap = (1.5 * (t[t.length - 1] - t[0])) / Math.max(1, run.of - 1);
  const joined = (i, j) => i >= 0 && j < t.length && (t[j] - t[i]) / (j - i) < gap;
  for (let i = 0; i + 1 < column.length; i++) {
    if (!(column[i] < value && column[i + 1] >= value) || !joined(i, i + 1)) continue;
    const rows = joined(i - 1, i + 2) ? [i - 1, i, i + 1, i + 2] : [i, i + 1];
    const through = (array, s) => rows.reduce((sum, k) => sum + array[k] * rows.reduce((product, j) => (j === k ? product : (product * (s - j)) / (k - j)), 1), 0);
    let low = i, high = i + 1;
    for (let step = 0; step < 40; step++) { const middle = (low + high) / 2; if (through(column, middle) < value) low = middle; else high = middle; }
    others.forEach((array, k) => found[k].push(through(array, (low + high) / 2)));
  }
  return found;
}

function motionPanel({ motions: views }, buffer, colours) {
  const forms = views.map((motion) => {
    for (const name of ["times", "positions", "rotations"]) motion[name] = numbers(buffer, motion[name]);
    return new Forms(motion, buffer);
  });
  const help = ({ dimension }) => `Drag to ${dimension === 3 ? "turn" : "move"}, wheel to zoom, double-click for the first view; arrows, + and − with the keyboard.`;
  const canvas = element("canvas", { tabindex: "0", role: "img" }), note = element("p", { class: "note" });
  let view = null;
  const show = (k) => {
    canvas.title = help(views[k]);
    canvas.setAttribute("aria-label", `${views[k].note} ${canvas.title}`);
    note.textContent = views[k].note;
    if (view) view.show(views[k], forms[k]);
  };
  const made = panel(views[0].name || "Motion", views.length > 1 && choice("What moves", views.map((motion) => motion.view), show));
  made.append(element("div", { class: "stage" }, canvas), note);
  show(0);
  return { made, start: () => { view = new MotionView(canvas, views[0], forms[0], colours); motions.push(view); } };
}

function tablePanel({ title, rows, note, words }) {
  const made = panel(title);
  if (rows[0].length > 3 || words) made.classList.add("wide");
  if (words) made.classList.add("words");
  const cells = (row, name) => row.map((text, k) => element(k === 0 || name === "th" ? "th" : "td", { text, scope: name === "th" ? "col" : k === 0 ? "row" : null }));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...cells(rows[0], "th"))), element("tbody", {}, ...rows.slice(1).map((row) => element("tr", {}, ...cells(row, "td")))));
  made.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table));
  if (note) made.append(element("p", { class: "note", text: note }));
  return { made };
}

function textPanel({ title, text }) {
  const copy = element("button", { type: "button", text: "copy", onclick: async () => {
    try { await navigator.clipboard.writeText(text); copy.textContent = "copied"; } catch { getSelection().selectAllChildren(body); copy.textContent = "selected"; }
    setTimeout(() => { copy.textContent = "copy"; }, 1500);
  } });
  const made = panel(title, copy), body = element("pre", { text, tabindex: "0", "aria-label": title });
  made.append(body);
  return { made };
}

// Player of all motions together, which shows the time in all charts.
class Player {
  constructor() {
    const by = (id) => document.getElementById(id);
    Object.assign(this, { play: by("play"), scrub: by("scrub"), clock: by("clock"), speed: by("speed"), playing: false });
    const timed = motions.map((view) => view.motion.times).filter((times) => times.length > 1);
    const axes = charts.filter((view) => view.chart && view.chart.x.time).flatMap((view) => view.chart.curves.map((curve) => curve.x)).filter((x) => x.length);
    const all = timed.length ? timed : axes;
    if (!all.length) return;
    this.from = Math.min(...all.map((times) => times[0]));
    this.until = Math.max(...all.map((times) => times[times.length - 1]));
    if (!(this.until > this.from)) return;
    by("player").hidden = false;
    this.rates(timed);
    this.play.addEventListener("click", () => this.toggle());
    this.scrub.addEventListener("input", () => this.seek(this.from + (this.scrub.value / 1000) * (this.until - this.from)));
    by("trail").addEventListener("change", (event) => motions.forEach((view) => { view.trail = event.target.checked; view.draw(); }));
    // The address may end with a time: report.html#t=12.5
    this.seek(Number(new URLSearchParams(location.hash.slice(1)).get("t")) || this.from);
  }

  // Speeds at which the motion can be followed: ×1 is real time where the unit of time is known; otherwise it takes
  // about 20 s, or two of its frames make one of the screen.
  rates(timed) {
    const seconds = motions.length ? motions[0].motion.seconds : null, length = this.until - this.from;
    const frames = timed.length ? Math.max(...timed.map((times) => times.length)) : 1000;
    this.unit = seconds ? 1 / seconds : length / Math.max(12, Math.min(60, frames / 30));
    const factors = [0.1, 0.25, 0.5, 1, 2, 4, 10];
    let usual = 1;
    if (seconds && !(length * seconds >= 0.5 && length * seconds <= 300)) {
      // Nobody could follow, or would wait: the power of ten at which it takes 6 to 60 s.
      usual = 10 ** Math.round(Math.log10((length * seconds) / 19));
      factors.splice(0, factors.length, ...[0.1, 0.2, 0.5, 1, 2, 5, 10].map((part) => part * usual), ...(usual > 0.1 && usual < 10 ? [] : [1]));
      factors.sort((a, b) => a - b);
    }
    for (const factor of factors) this.speed.append(element("option", { value: factor, text: `×${short(factor)}`, selected: factor === usual ? "" : null }));
  }

  seek(t) {
    if (this.from === undefined) return;
    this.t = Math.max(this.from, Math.min(this.until, t));
    this.scrub.value = (1000 * (this.t - this.from)) / (this.until - this.from);
    this.clock.textContent = `t = ${short(this.t)}`;
    this.scrub.setAttribute("aria-valuetext", this.clock.textContent);
    motions.forEach((view) => view.at(this.t));
    charts.forEach((view) => view.at(this.t));
  }

  toggle() {
    if (this.from === undefined) return;
    this.playing = !this.playing;
    this.play.textContent = this.playing ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    if (!this.playing) return;
    if (this.t >= this.until) this.seek(this.from);
    let before = performance.now();
    const frame = (now) => {
      if (!this.playing) return;
      const t = this.t + (Math.min(now - before, 100) / 1000) * this.unit * Number(this.speed.value);
      before = now;
      this.seek(t);
      if (t >= this.until) this.toggle(); else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  key(event) {
    const step = (this.until - this.from) / 200;
    const act = { " ": () => this.toggle(), ArrowLeft: () => this.seek(this.t - step), ArrowRight: () => this.seek(this.t + step), Home: () => this.seek(this.from), End: () => this.seek(this.until) }[event.key];
    if (act && this.from !== undefined) { event.preventDefault(); act(); }
  }
}

// Value that is kept for when the page is read again; null if the browser keeps nothing.
function remembered(key) { try { return localStorage.getItem(key); } catch { return null; } }

function isDark() { return document.documentElement.classList.contains("dark"); }

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  charts.forEach((view) => view.restyle());
  motions.forEach((view) => view.draw());
}

async function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const kept = remembered("theme");
  theme(kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const toggle = () => { const dark = !isDark(); theme(dark); try { localStorage.setItem("theme", dark ? "dark" : "light"); } catch { /* not kept */ } };
  document.getElementById("theme").addEventListener("click", toggle);
  document.getElementById("facts").append(...content.facts.map(([name, value]) => element("div", {}, element("dt", { text: name }), element("dd", { text: value }))));
  document.getElementById("warnings").append(...content.warnings.map((text) => element("p", { text })));
  document.getElementById("made-by").textContent = content.made_by;
  const sections = document.getElementById("sections"), starts = [];
  const buffer = await unpack();
  let moving = 0;
  for (const { title, link, folded, panels } of content.sections) {
    const grid = element("div", { class: "panels" });
    for (const one of panels) {
      const make = { charts: chartsPanel, explorer: explorerPanel, motion: motionPanel, table: tablePanel, text: textPanel }[one.kind];
      const { made, start } = make(one, buffer, one.kind === "motion" ? moving++ : 0);
      grid.append(made);
      if (start) starts.push(start);
    }
    if (folded) { sections.append(element("details", {}, element("summary", {}, element("h2", { text: title })), grid)); continue; }
    if (title) sections.append(link ? element("h2", {}, element("a", { href: link, text: title })) : element("h2", { text: title }));
    sections.append(grid);
  }
  document.getElementById("wait").remove();
  for (const start of starts) start();
  player = new Player();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || (event.target.tagName === "BUTTON" && event.key === " ")) return;
    if (event.key === "d" || event.key === "D") toggle(); else player.key(event);
  });
  sections.setAttribute("aria-busy", "false");
  document.documentElement.dataset.ready = "true";
  // On paper pages are light, and pictures finer.
  let screen = false;
  addEventListener("beforeprint", () => { screen = isDark(); charts.forEach((view) => { view.printed = true; }); theme(false); });
  addEventListener("afterprint", () => { charts.forEach((view) => { view.printed = false; }); theme(screen); });
}

start().catch((error) => {
  document.getElementById("sections").replaceChildren(element("p", { role: "alert", text: `This page cannot be drawn: ${error.message}. It needs a browser of 2023 or later.` }));
  throw error;
});
