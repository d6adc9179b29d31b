//! Pages in a browser. Without Chromium this is skipped, unless CI asks for it.

mod common;

use common::Folder;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Script before the page's own ones: collects errors.
const BEFORE: &str = r#"<script>
window.wrong = [];
addEventListener("error", (event) => wrong.push(String(event.message)));
addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
// Where nobody looks a browser draws no frames.
window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);
for (const level of ["error", "warn"]) { console[level] = (...all) => wrong.push(all.join(" ")); }
window.report = (found) => document.body.append(Object.assign(document.createElement("pre"), { id: "found", textContent: JSON.stringify({ ...found, wrong }) }));
</script>"#;

/// Script after them: plays with the page, and leaves its findings in the document.
const AFTER: &str = r#"<script>
(async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const found = {}, all = (what) => [...document.querySelectorAll(what)];
  try {
    for (let k = 0; k < 200 && !document.documentElement.dataset.ready; k++) await wait(50);
    found.ready = document.documentElement.dataset.ready === "true";
    all("details").forEach((one) => { one.open = true; });
    await wait(500);
    const pixels = () => all(".stage canvas").map((canvas) => canvas.toDataURL().length + canvas.toDataURL().slice(-4000)).join();
    const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
    const clock = () => document.getElementById("clock").textContent;
    found.panels = all(".panel h3").map((heading) => heading.textContent);
    found.plots = all(".plot").length;
    charts.forEach((view) => view.restyle());
    const inked = (canvas, { left, top, width, height }) => {
      const ratio = canvas.width / canvas.clientWidth, box = [left, top, width, height].map((at) => Math.round(at * ratio));
      const pixels = canvas.getContext("2d").getImageData(...box).data, colours = new Set();
      for (let k = 0; k < pixels.length; k += 4) if (pixels[k + 3]) colours.add(`${pixels.subarray(k, k + 3)}`);
      return colours.size;
    };
    // The grid alone is of one colour.
    found.drawn = charts.filter((view) => view.frame && inked(view.canvas, view.frame.plot) > 1).length;
    // An axis that shows none of its data.
    const shows = ({ ends: [low, high], log }) => (y) => { const at = log ? Math.log10(y) : y; return at >= low && at <= high; };
    found.unseen = charts.filter(({ chart, frame }) => !chart.map && !chart.curves.some((curve) => curve.y.some(shows(frame.scales.y)))).length;
    found.canvases = all(".stage canvas").length;
    found.painted = all(".stage canvas").filter((canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v !== 0)).length;
    found.clock = [clock()];
    const before = pixels();
    for (let k = 0; k < 30; k++) key("ArrowRight");
    found.moved_by_keys = pixels() !== before;
    found.clock.push(clock());
    document.getElementById("play").click();
    for (let k = 0; k < 200 && clock() === found.clock[1]; k++) await wait(30);
    document.getElementById("play").click();
    found.clock.push(clock());
    key("Home");
    found.clock.push(clock());
    const canvas = all(".stage canvas")[0];
    if (canvas) {
      const still = pixels();
      for (const name of ["ArrowLeft", "+"]) canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
      found.turned = pixels() !== still;
    }
    const titles = () => all(".panel h3").map((heading) => heading.textContent).join();
    const earlier = titles();
    all(".tools button[aria-pressed=false]")[0]?.click();
    await wait(200);
    found.chosen = titles() !== earlier;
    const list = all("select[aria-label='Choice of axes']")[0];
    if (list) {
      const labels = () => all(".plot").map((plot) => plot.getAttribute("aria-label")).join();
      const shown = labels();
      list.value = list.options[1].value;
      list.dispatchEvent(new Event("change"));
      await wait(200);
      found.axes_changed = labels() !== shown;
    }
    const dark = document.documentElement.classList.contains("dark");
    document.getElementById("theme").click();
    await wait(200);
    found.theme_changed = document.documentElement.classList.contains("dark") !== dark;
    found.wider_than_window = document.documentElement.scrollWidth > innerWidth;
    found.unnamed = all("canvas, .plot, button, select, input").filter((one) => !(one.getAttribute("aria-label") || one.textContent || one.closest("label"))).length;
    found.fetched = performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => !/^(blob|data):/.test(name));
  } catch (error) { wrong.push(String(error)); }
  report(found);
})();
</script></body>"#;

/// Script after the page's own ones: what a person does with a chart.
const GESTURES: &str = r#"<script>
(async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms)), found = {};
  try {
    for (let k = 0; k < 200 && !document.documentElement.dataset.ready; k++) await wait(50);
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
    await wait(200);
    charts.forEach((view) => view.restyle());
    const [view, other] = charts.filter((one) => one.chart.x.time), { canvas } = view;
    canvas.setPointerCapture = () => {};
    const send = (type, [px, py], more) => {
      const box = canvas.getBoundingClientRect();
      canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: box.left + px, clientY: box.top + py, bubbles: true, ...more }));
    };
    const drag = (from, to, more) => { send("pointerdown", from, more); send("pointermove", to, more); send("pointerup", to, more); };
    const at = (across, up) => { const { left, top, width, height } = view.frame.plot; return [left + across * width, top + up * height]; };
    const ends = (one) => [one.frame.scales.x.ends, one.frame.scales.y.ends];
    found.whole = [ends(view), ends(other)];
    drag(at(0.25, 0.25), at(0.75, 0.5));
    found.box = [ends(view), ends(other)];
    drag(at(0.5, 0.5), at(0.25, 0.5), { shiftKey: true });
    found.moved = ends(view);
    found.button = !view.whole.hidden;
    canvas.dispatchEvent(new MouseEvent("dblclick"));
    found.reset = [ends(view), ends(other)];
    drag(at(0.25, 0.5), at(0.75, 0.51));
    found.strip = ends(view);
    view.whole.click();
    const touch = { pointerType: "touch" }, second = { pointerType: "touch", pointerId: 2 };
    drag(at(0.5, 0.5), at(0.25, 0.9), touch);
    found.finger = ends(view);
    view.whole.click();
    send("pointerdown", at(0.375, 0.5), touch);
    send("pointerdown", at(0.625, 0.5), second);
    send("pointermove", at(0.625, 0.5), second);
    send("pointermove", at(0.875, 0.5), second);
    send("pointerup", at(0.375, 0.5), touch);
    send("pointerup", at(0.875, 0.5), second);
    found.fingers = ends(view);
    view.whole.click();
    const drawn = view.drawn[0], k = drawn.px.length >> 1, point = [drawn.px[k], drawn.py[k]];
    send("pointermove", point);
    found.reading = [view.reading.hidden, view.reading.textContent];
    send("pointerdown", point);
    send("pointerup", point);
    found.time = [drawn.curve.x[k], player.t];
    const named = charts.find((one) => one.legend.children.length > 1);
    const count = () => [named.drawn.length, named.legend.children[0].getAttribute("aria-pressed")];
    found.legend = [count()];
    named.legend.children[0].click();
    found.legend.push(count());
    named.legend.children[0].click();
    found.legend.push(count());
    // Ticks of a range, and the number from which they count.
    const ticks = (low, high, log) => { const { ticks, base } = new Scale(log, [low, high], 0, 400).ticks(5); return [ticks.map(({ text }) => text).filter(Boolean).join(" "), base]; };
    found.ticks = [
      ticks(0, 20, false), ticks(-0.31, 0.32, false), ticks(0, 3.1e-7, false), ticks(2e5, 1.3e7, false), ticks(0.5 - 4e-13, 0.5 + 4e-13, false),
      ticks(-1.7e308, 1.7e308, false), ticks(-16, -4, true), ticks(-3.2, -1.1, true), ticks(0, 0.3, true), ticks(-300, 300, true),
    ];
    const ranges = [padded(3, 3, false, 0.1), padded(-Number.MAX_VALUE, Number.MAX_VALUE, false, 0.1), padded(Infinity, -Infinity, true, 0.1), padded(0, 0, false, 0.1), padded(1, 1 + Number.EPSILON, false, 0.1)];
    found.ranges = ranges;
    found.finite = ranges.every((range) => { const scale = new Scale(false, range, 0, 400); return [scale.slope, scale.pixelOf(range[1]), scale.ticks(5).ticks.length].every((x) => Number.isFinite(x) && x > 0); });
    // A line from far left to far right of the reach of a canvas crosses it.
    found.within = [within(-1e300, 5, 1e300, 5), within(-1e300, 1e300, 1e300, 1e300)];
    // A hundred thousand points take the path of the pixels, not of the points.
    const path = [], pen = { moveTo: (x, y) => path.push(y), lineTo: (x, y) => path.push(y) };
    const many = Float64Array.from({ length: 100000 }, (_, k) => k);
    traceStraight(pen, { px: many.map((k) => k / 250), py: many.map((k) => (k === 54321 ? 300 : Math.sin(k))) });
    found.path = [path.length < 4000, Math.max(...path)];
  } catch (error) { wrong.push(`${error.stack}`); }
  report(found);
})();
</script></body>"#;

fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("HOLONOME_CHROMIUM").map(PathBuf::from);
    let found = named.or_else(|| {
        let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        names
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
            .find(|path| path.is_file())
    });
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no Chromium, and CI asks for it");
        eprintln!("SKIPPED: pages in a browser, because Chromium is missing");
    }
    found
}

/// Show a page in a window of a width, play with it, and return the findings.
fn shown(chromium: &Path, folder: &Folder, page: &str, width: u32) -> Value {
    browsed(chromium, folder, page, width, AFTER)
}

/// Show a page in a window of a width, run a script after its own ones, and return the findings.
fn browsed(chromium: &Path, folder: &Folder, page: &str, width: u32, script: &str) -> Value {
    let path = folder.path(page);
    let html = fs::read_to_string(&path).unwrap();
    assert!(html.len() < 1_000_000, "{page} has {} bytes", html.len());
    let tested = folder.path(&format!("tested-{width}.html"));
    let html = html.replacen("<head>", &format!("<head>{BEFORE}"), 1);
    let (start, end) = html.rsplit_once("</body>").unwrap();
    fs::write(&tested, format!("{start}{script}{end}")).unwrap();
    let profile = folder.path("profile");
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--virtual-time-budget=20000",
        ])
        .args([
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", tested.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let found =
        dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (json, _) = found.unwrap_or_else(|| {
        panic!("{page} left nothing: {}", String::from_utf8_lossy(&output.stderr))
    });
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&json).unwrap()
}

/// Check the common behaviour of all pages.
#[track_caller]
fn check(found: &Value, plots: usize, canvases: usize) {
    assert_eq!(found["wrong"], serde_json::json!([]), "{found:#}");
    assert_eq!(found["ready"], true, "{found:#}");
    assert_eq!((&found["plots"], &found["drawn"]), (&plots.into(), &plots.into()), "{found:#}");
    assert_eq!(
        (&found["canvases"], &found["painted"]),
        (&canvases.into(), &canvases.into()),
        "{found:#}"
    );
    assert_eq!(found["unseen"], 0, "axes show their data: {found:#}");
    assert_eq!(found["fetched"], serde_json::json!([]), "a page asks no network: {found:#}");
    for (key, value) in [("theme_changed", true), ("chosen", true), ("wider_than_window", false)] {
        assert_eq!(found[key], value, "{key}: {found:#}");
    }
    assert_eq!(found["unnamed"], 0, "what a screen reader meets has a name: {found:#}");
    if canvases > 0 {
        for key in ["moved_by_keys", "turned", "axes_changed"] {
            assert_eq!(found[key], true, "{key}: {found:#}");
        }
        let t = |k: usize| {
            found["clock"][k].as_str().unwrap().trim_start_matches("t = ").parse::<f64>().unwrap()
        };
        assert!(
            t(0) == 0.0 && t(1) > 0.0 && t(2) > t(1) && t(3) == 0.0,
            "keys and the player move the time: {found:#}"
        );
    }
}

#[test]
fn a_run_moves_in_a_browser() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    folder.run("run models/chain.holo --set n=50 --method rattle --step 0.01 --until 20 --out chain --report").ok();
    for width in [1280, 500] {
        let found = shown(&chromium, &folder, "chain/report.html", width);
        check(&found, 4, 1);
        let panels = found["panels"].to_string();
        assert!(
            panels.contains("Motion")
                && panels.contains("Multipliers")
                && panels.contains("Made again by"),
            "{panels}"
        );
    }
}

/// Numbers of an entry of the findings.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        one => vec![one.as_f64().unwrap_or_else(|| panic!("{one} is not a number"))],
    }
}

#[test]
fn charts_are_zoomed_moved_and_read() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    folder.pendulum("--until 20 --out run --report").ok();
    let found = browsed(&chromium, &folder, "run/report.html", 1280, GESTURES);
    assert_eq!(found["wrong"], serde_json::json!([]), "{found:#}");
    // The ends of both axes within a thousandth of them: the box is of whole pixels, and the margins follow the ticks.
    let near = |found: &Value, expected: [f64; 4], size: f64| {
        let found = numbers(found);
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.02 * size),
            "{found:?} {expected:?}"
        );
    };
    let [left, right, bottom, top] = numbers(&found["whole"][0]).try_into().unwrap();
    let (across, up) = (right - left, top - bottom);
    assert_eq!((left, right), (0.0, 20.0));
    let box_of = [left + across / 4.0, right - across / 4.0, bottom + up / 2.0, top - up / 4.0];
    near(&found["box"][0], box_of, across.max(up));
    // The other chart over time follows along it, and only along it.
    assert_eq!(found["box"][1][0], found["box"][0][0], "{found:#}");
    assert_eq!(found["box"][1][1], found["whole"][1][1], "{found:#}");
    let [a, b, c, d] = box_of;
    near(&found["moved"], [a + across / 8.0, b + across / 8.0, c, d], across.max(up));
    assert_eq!(found["button"], true, "{found:#}");
    assert_eq!(found["reset"], found["whole"], "{found:#}");
    // A flat box is a strip of time.
    near(&found["strip"], [a, b, bottom, top], across);
    assert_eq!(found["strip"][1], found["whole"][0][1], "{found:#}");
    // A finger moves along the time only. Two keep what is below them: 7.5 and 12.5 are twice as far apart.
    near(&found["finger"], [left + across / 4.0, right + across / 4.0, bottom, top], across);
    assert_eq!(found["finger"][1], found["whole"][0][1], "{found:#}");
    near(&found["fingers"][0], [3.75, 13.75, 0.0, 0.0], across);
    assert_eq!(found["reading"][0], false, "{found:#}");
    assert!(found["reading"][1].as_str().unwrap().starts_with("10, "), "{found:#}");
    assert_eq!(found["time"][0], found["time"][1], "a click goes to the time: {found:#}");
    // A curve and its samples leave with their name, and come back.
    let [all, fewer, again] = [0, 1, 2].map(|k| found["legend"][k].clone());
    assert_eq!((&all, all[1].as_str(), fewer[1].as_str()), (&again, Some("true"), Some("false")));
    assert!(fewer[0].as_u64() < all[0].as_u64(), "{found:#}");
    let ticks = [
        ("0 5 10 15 20", 0.0),
        ("−0.2 0 0.2", 0.0),
        ("0 10⁻⁷ 2×10⁻⁷ 3×10⁻⁷", 0.0),
        ("0.5×10⁷ 10⁷", 0.0),
        ("−4×10⁻¹³ −2×10⁻¹³ 0 2×10⁻¹³ 4×10⁻¹³", 0.5),
        ("−10³⁰⁸ 0 10³⁰⁸", 0.0),
        ("10⁻¹⁵ 10⁻¹² 10⁻⁹ 10⁻⁶", 0.0),
        ("10⁻³ 2×10⁻³ 5×10⁻³ 10⁻² 2×10⁻² 5×10⁻²", 0.0),
        ("1 1.2 1.4 1.6 1.8", 0.0),
        ("10⁻²⁰⁰ 10⁰ 10²⁰⁰", 0.0),
    ];
    for (k, (text, base)) in ticks.into_iter().enumerate() {
        let own = &found["ticks"][k];
        assert_eq!((own[0].as_str(), own[1].as_f64()), (Some(text), Some(base)));
    }
    assert_eq!(found["finite"], true, "{found:#}");
    assert_eq!(numbers(&found["ranges"][0]), [2.7, 3.3]);
    assert_eq!(found["within"], serde_json::json!([[-20000, 5, 20000, 5], null]));
    assert_eq!(found["path"], serde_json::json!([true, 300]), "no peak is lost: {found:#}");
}

#[test]
fn the_page_of_a_small_run_is_small() {
    let folder = Folder::new();
    folder.pendulum("--until 20 --out run --report").ok();
    // Scripts and styles are 90 kB; 30 different arrays of 1001 samples are 120 kB as 32-bit numbers, of which
    // compression leaves half.
    let size = fs::metadata(folder.path("run/report.html")).unwrap().len();
    assert!(size < 180_000, "the page has {size} bytes");
}

#[test]
fn what_a_model_draws_is_painted() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    let model = "coordinate q : R^3 = (1, 0, 0)
momentum p of q = (0, 1, 0.5)
hamiltonian dot(p, p)/2 + dot(q, q)/2
draw sphere(q, 0.1) label \"ball\" colour q.x
draw line((0, 0, 0), q)
draw polyline(k in 0..9 : k*q/9) colour \"teal\"
draw box((cos(t), 0, 0, sin(t)), -q, (0.2, 0.3, 0.4)) colour \"tan\"
draw cylinder((0, 0, -1), (0, 0, -0.8), 0.3)
draw arrow(q, q'/2)
draw surface(u, v in 0..2*pi : (u*cos(v), u*sin(v), u^2 - 1))
draw trail(q) colour \"#a03\"
";
    fs::write(folder.path("drawn.holo"), model).unwrap();
    folder.run("run drawn.holo --until 6 --out drawn --report").ok();
    let page = fs::read_to_string(folder.path("drawn/report.html")).unwrap();
    for form in ["sphere", "polyline", "box", "cylinder", "arrow", "surface", "trail"] {
        assert!(page.contains(&format!("\"form\":\"{form}\"")), "{form}");
    }
    check(&shown(&chromium, &folder, "drawn/report.html", 1280), 3, 1);
    // The figure of the motion shows the trails: an ellipse.
    folder.run("plot drawn --svg drawn.svg").ok();
    let svg = fs::read_to_string(folder.path("drawn.svg")).unwrap();
    assert!(svg.contains(">x<") && svg.contains(">y<") && !svg.contains(">q.x<"), "{svg}");
}

#[test]
fn a_run_becomes_a_film() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    let model = "unit m, kg, s\ncoordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\n\
        hamiltonian dot(p, p)/2 + dot(q, q)/2\ndraw box(0, (0, 0), (2.4, 2.4)) colour \"white\"\n\
        draw sphere(q, 0.1) colour \"red\"\n";
    fs::write(folder.path("circle.holo"), model).unwrap();
    folder.run("run circle.holo --until 2 --out run").ok();
    let browser = chromium.display();
    folder
        .run(&format!(
            "animate run --gif a.gif --out a.mp4 --rate 5 --size 200x160 --browser {browser}"
        ))
        .ok();
    // Real time: two seconds with the frames of both ends, each of a fifth of a second.
    let mut reader = gif::DecodeOptions::new();
    reader.set_color_output(gif::ColorOutput::RGBA);
    let mut reader = reader.read_info(fs::File::open(folder.path("a.gif")).unwrap()).unwrap();
    assert_eq!((reader.width(), reader.height()), (200, 160));
    let mut places = Vec::new();
    while let Some(frame) = reader.read_next_frame().unwrap() {
        assert_eq!(frame.delay, 20);
        // The middle of what is red.
        let pixels = frame.buffer.chunks(4).enumerate();
        let red: Vec<(f64, f64)> = pixels
            .filter(|(_, rgba)| rgba[0] > 150 && rgba[1] < 90 && rgba[2] < 90)
            .map(|(k, _)| ((k % 200) as f64, (k / 200) as f64))
            .collect();
        assert!(red.len() > 20, "a ball of about 5 pixels");
        let count = red.len() as f64;
        let sum = red.iter().fold((0.0, 0.0), |a, p| (a.0 + p.0, a.1 + p.1));
        places.push((sum.0 / count, sum.1 / count));
    }
    assert_eq!(places.len(), 11);
    // The circle is round, and is gone along at the right speed, to a pixel or two.
    let (middle, size) = ((100.0, 80.0), places[0].0 - 100.0);
    assert!(size > 30.0, "{size}");
    for (k, place) in places.iter().enumerate() {
        let t = 0.2 * k as f64;
        let wanted = (middle.0 + size * t.cos(), middle.1 - size * t.sin());
        let miss = (place.0 - wanted.0).hypot(place.1 - wanted.1);
        assert!(miss < 2.0, "{k}: {place:?} is not {wanted:?}");
    }
    // The number of samples stands behind that of their common size.
    let video = fs::read(folder.path("a.mp4")).unwrap();
    assert_eq!(&video[4..8], b"ftyp");
    let sizes = video.windows(4).position(|name| name == b"stsz").unwrap();
    assert_eq!(video[sizes + 12..sizes + 16], [0, 0, 0, 11]);
    folder.run("animate run --out a.avi").refused(&["a.avi", ".gif or .mp4"]);
    folder.run("animate run --gif b.gif --browser /nothing").refused(&["/nothing does not start"]);
    folder.run("animate run --gif b.gif --browser false").refused(&["the browser has ended"]);
    folder.run("animate run --gif b.gif --size 333x200").refused(&["even numbers"]);
    folder.run("animate run").refused(&["--gif"]);
    folder.run("sweep circle.holo --vary q.x=1..2,3 --until 1 --out many").ok();
    folder.run("animate many --gif b.gif").refused(&["many", "this is an ensemble"]);
    assert!(!folder.path("b.gif").exists() && !folder.path("b.gif.part").exists());
}

#[test]
fn events_are_points_of_a_section() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    let model = "
        coordinate q : R^2 = (0, 0.1)
        momentum p of q = (0.48, 0.05)
        hamiltonian dot(p, p)/2 + dot(q, q)/2 + q.x^2*q.y - q.y^3/3
        event section : q.x = 0 rising : record
        event once : q.x = 0.1 rising every 1000";
    folder.write("hh.holo", model).run("run hh.holo --until 200 --out hh --report").ok();
    let found = shown(&chromium, &folder, "hh/report.html", 1280);
    // The drift, the columns, and the section; the other event has no points.
    check(&found, 4, 1);
    let panels = found["panels"].to_string();
    assert!(panels.contains("Events") && panels.contains("Where section happens"), "{panels}");
    // What the section holds at 0 varies by rounding, and is not offered first.
    let html = fs::read_to_string(folder.path("hh/report.html")).unwrap();
    let own = &html[html.find("Where section happens").unwrap()..];
    let first = own[own.find("presets").unwrap()..].chars().take(200).collect::<String>();
    assert!(first.contains("p.y over q.y"), "{first}");
}

#[test]
fn a_body_turns_and_runs_stand_side_by_side() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    for (method, out) in [("rk4", "a"), ("corrected:rk4", "b")] {
        folder
            .run(&format!(
                "run models/heavy-top.holo --method {method} --step 0.01 --until 10 --out {out}"
            ))
            .ok();
    }
    folder.run("report a b --out both.html").ok();
    // With the multipliers of both.
    check(&shown(&chromium, &folder, "both.html", 1280), 5, 2);
}

#[test]
fn a_sweep_and_a_comparison_are_drawn() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    folder.run("sweep models/planar-pendulum.holo --trajectories 300 --vary g=0.5+i/N --until 5 --out sweep").ok();
    folder.run("compare models/spherical-pendulum.holo --method euler,rk4 --step 0.02,0.01 --until 2 --out cmp").ok();
    folder.run("report sweep").ok();
    folder.run("report cmp").ok();
    let html = fs::read_to_string(folder.path("cmp/report.html")).unwrap();
    for text in ["Made again by", "--step 0.02,0.01 --until 2", "spherical-pendulum.holo"] {
        assert!(html.contains(text), "no {text}");
    }
    check(&shown(&chromium, &folder, "sweep/report.html", 1280), 3, 0);
    // A grid has maps; samples in between have histories and histograms at every time.
    folder.run("sweep models/planar-pendulum.holo --over g=1..2,12 --over m=1..3,10 --until 5 --every 0.5 --out grid").ok();
    folder.run("report grid").ok();
    check(&shown(&chromium, &folder, "grid/report.html", 1280), 6, 0);
    let svg = |options: &str| {
        folder.run(&format!("plot {options} --svg figure.svg")).ok();
        fs::read_to_string(folder.path("figure.svg")).unwrap()
    };
    let map = svg("grid");
    assert!(map.contains(">g<") && map.contains(">m<") && map.matches("<rect").count() >= 120);
    assert!(svg("grid --map H").contains(">H at T<"));
    let fan = svg("grid --x t --y q.x");
    assert!(fan.contains(">median<") && fan.contains(">q.x<"));
    folder
        .run("sweep models/planar-pendulum.holo --vary g=1..2,3 --until 5 --every 0.5 --out few")
        .ok();
    assert!(svg("few --x t --y q.x").contains(">g = 1.5<"));
    folder.run("plot grid --map q.w --svg f.svg").refused(&["grid has no map of 'q.w'", "it has"]);
    folder.run("plot few --map q.x --svg f.svg").refused(&["no grid of two dimensions"]);
    folder.run("plot sweep --x t --svg f.svg").refused(&["record them by --every"]);
    check(&shown(&chromium, &folder, "cmp/report.html", 500), 2, 0);
}

#[test]
fn a_study_shows_its_claims_and_figures() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new();
    folder.run("reproduce planar-pendulum-2022 --out all").ok();
    let found = shown(&chromium, &folder, "all/planar-pendulum-2022/report.html", 1280);
    // Both panels of Fig. 6, those of every page of runs, and the multipliers of two more.
    check(&found, 8, 3);
    let panels = found["panels"].to_string();
    assert!(panels.contains("error over step\",\"error over work in gradients"), "{panels}");
}

#[test]
fn a_report_is_made_of_results_only() {
    let folder = Folder::new();
    folder
        .run("report nowhere")
        .refused(&["nowhere is not a stored run", "there is no such folder"]);
    folder.run("report models").refused(&["it holds no zarr.json"]);
    let answer = folder.run("run models/kepler.holo --until 10 --record x --out few").ok();
    assert!(answer.stdout.contains("kepler"));
    // Data that were not recorded are left out.
    let answer = folder.run("report few --json").ok();
    assert_eq!(answer.json()["out"], "few/report.html");
    let html = fs::read_to_string(folder.path("few/report.html")).unwrap();
    assert!(html.contains("--record x"), "the command that makes the run again");
}

#[test]
fn figures_are_drawn_in_three_formats() {
    let folder = Folder::new();
    folder.pendulum("--until 10 --out run").ok();
    folder.run("plot run --svg run.svg --pdf run.pdf --png run.png").ok();
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    let svg = String::from_utf8(read("run.svg")).unwrap();
    // The drifts are beside the orbit, at round-off.
    for text in [">q.y<", ">rod.hidden<", "10⁻¹⁶"] {
        assert!(svg.contains(text), "no {text} in {svg}");
    }
    assert!(read("run.pdf").starts_with(b"%PDF") && read("run.png").starts_with(b"\x89PNG"));
    folder.run("plot run --x q.x --y p.x,p.y --svg phase.svg").ok();
    assert!(String::from_utf8(read("phase.svg")).unwrap().contains(">p.y<"));
    // A comma within brackets is part of a name.
    folder.run("run models/rigid-body.holo --until 1 --out body").ok();
    folder.run("plot body --y R[1,2],R[1,3] --svg body.svg").ok();
    assert!(String::from_utf8(read("body.svg")).unwrap().contains(">R[1,2]<"));
    folder
        .run("plot run --y q.w --svg none.svg")
        .refused(&["run has no column 'q.w'", "did you mean"]);
    folder.run("plot run").refused(&["--svg"]);
    // Several runs give a line each, named after its folder.
    folder.pendulum("--until 5 --method euler --step 0.01 --out other/run").ok();
    folder.run("plot run other/run --y drift.H --svg both.svg").ok();
    let both = String::from_utf8(read("both.svg")).unwrap();
    for text in [">largest |drift of H| so far<", ">run<", ">other/run<", ">round-off<", ">0<"] {
        assert_eq!(both.matches(text).count(), 1, "{text} in {both}");
    }
    folder.run("plot run other/run --svg all.svg").ok();
    assert_eq!(String::from_utf8(read("all.svg")).unwrap().matches("so far<").count(), 4);
    folder.run("plot run other/run --x q.x --y q.y --svg orbits.svg").ok();
    assert!(String::from_utf8(read("orbits.svg")).unwrap().contains(">other/run<"));
    folder
        .run("plot run other/run --y q.x,q.w --svg none.svg")
        .refused(&["run has no column 'q.w'"]);
    // Quantities of different sizes have panels of their own; a quantity stands for its components.
    folder.run("plot run --y q,lambda.rod,p --svg sizes.svg").ok();
    let sizes = String::from_utf8(read("sizes.svg")).unwrap();
    assert!(sizes.contains(">q.x<") && sizes.contains(">p.y<") && sizes.contains(">lambda.rod<"));
    for ending in ["svg", "pdf", "png"] {
        folder
            .run(&format!("plot run --y q.x --title Swing --size 300x200 --out one.{ending}"))
            .ok();
    }
    assert!(read("one.pdf").starts_with(b"%PDF") && read("one.png").starts_with(b"\x89PNG"));
    assert!(String::from_utf8(read("one.svg")).unwrap().contains(">Swing<"));
    folder.run("plot run --out one.jpg").refused(&["one.jpg", ".svg, .pdf or .png"]);
    folder.run("plot run --y drift.H --log --x-range 0..5 --y-range 1e-18..1e-10 --svg r.svg").ok();
    assert!(String::from_utf8(read("r.svg")).unwrap().contains("10⁻¹⁰"));
    folder.run("plot run --x-range 5..1 --svg r.svg").refused(&["5 is not below 1"]);
    folder.run("plot run --event top --svg r.svg").refused(&["no events 'top'"]);
    folder.run("compare models/spherical-pendulum.holo --method heun,rk4 --step 0.1,0.05 --until 1 --out cmp").ok();
    folder.run("plot cmp --svg cmp.svg").ok();
    assert!(String::from_utf8(read("cmp.svg")).unwrap().contains(">heun<"));
    folder.run("plot cmp --x t --svg none.svg").refused(&["leave them out"]);
    folder.run("plot run cmp --svg none.svg").refused(&["cmp is not a run"]);
}

/// Samples that lie periods apart are points, and the page says so; those that follow the motion are
/// lines. Poincaré sections are drawn from the events.
#[test]
fn unrelated_samples_are_not_joined() {
    let folder = Folder::new();
    let model = "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q^2/2 + q^4/4\n\
        coordinate s = 0.3\nmomentum r of s = 0.2\nobserve w = s\nevent up : p = 0 rising : record\n"
        .replace("p^2/2", "p^2/2 + r^2/2 + q^2*s^2/2 + s^2");
    fs::write(folder.path("duffing.holo"), &model).unwrap();
    folder.run("run duffing.holo --until 20 --out follows").ok();
    folder.run("run duffing.holo --until 2000 --samples 201 --out apart").ok();
    let svg = |run: &str, options: &str| {
        folder.run(&format!("plot {run} {options} --svg figure.svg")).ok();
        fs::read_to_string(folder.path("figure.svg")).unwrap()
    };
    let points = |svg: &str| svg.matches("<circle").count() > 50;
    for over in ["--x q --y p", "--y q", ""] {
        assert!(!points(&svg("follows", over)), "{over}");
        assert!(points(&svg("apart", over)), "{over}");
    }
    assert!(!points(&svg("apart", "--y q --lines")) && points(&svg("follows", "--y q --points")));
    // One oscillation of 4.77 and more takes place in 10.
    let page = |run: &str| {
        folder.run(&format!("report {run} --out page.html")).ok();
        fs::read_to_string(folder.path("page.html")).unwrap()
    };
    assert!(
        page("apart")
            .contains("Samples are about 2 periods apart: the motion shown is stroboscopic.")
    );
    assert!(!page("follows").contains("stroboscopic."));
    let section = svg("apart", "--event up --x s --y r");
    assert!(points(&section) && section.contains(">r<"));
    let refused = "events 'up' have no column 'p' that varies";
    folder.run("plot apart --event up --x q --y p --svg figure.svg").refused(&[refused]);
}

/// What was derived is followed by the meanings of the words that are used there, and of no others.
#[test]
fn the_words_of_what_was_derived_are_explained() {
    let folder = Folder::new();
    for (model, meant, other) in [
        ("spherical-pendulum", "holonomic: an equation", "Casimir function:"),
        ("spins", "Casimir function: a quantity", "holonomic:"),
        ("vortices", "second class: the motion", "rolling:"),
    ] {
        folder.run(&format!("run models/{model}.holo --until 1 --report --out {model}")).ok();
        let page = fs::read_to_string(folder.path(&format!("{model}/report.html"))).unwrap();
        let (_, words) = page.split_once("in plain words:").unwrap();
        assert!(words.contains(meant), "{model}: no {meant}");
        assert!(!words.contains(other), "{model}: {other}");
    }
}
