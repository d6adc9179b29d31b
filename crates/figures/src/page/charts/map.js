// Maps of charts: numbers over a grid, shown by colours.

// One hue where all numbers have one sign (viridis, van der Walt, Smith 2015), two about 0 (RdBu, Brewer 2003).
const ONE_SIGN = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const BOTH_SIGNS = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"];

// 256 colours of a map, as [red, green, blue] in bytes.
function shades({ range }) {
  const stops = (range[0] < 0 && range[1] > 0 ? BOTH_SIGNS : ONE_SIGN).map((text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)));
  return Array.from({ length: 256 }, (_, k) => {
    const at = (k / 255) * (stops.length - 1), stop = Math.min(Math.floor(at), stops.length - 2);
    return stops[stop].map((from, c) => Math.round(from + (at - stop) * (stops[stop + 1][c] - from)));
  });
}

// Borders of the cells about ascending centres, one more than these.
function borders(centres) {
  const last = centres.length - 1;
  if (last < 1) return [centres[0] - 0.5, centres[0] + 0.5];
  const inner = Array.from({ length: last }, (_, k) => (centres[k] + centres[k + 1]) / 2);
  return [2 * centres[0] - inner[0], ...inner, 2 * centres[last] - inner[last - 1]];
}

// Number of the cell in which a value lies; -1 outside of all.
function cellOf(edges, value) {
  if (!(value >= edges[0] && value <= edges[edges.length - 1])) return -1;
  return Math.min(locate(edges, value)[0], edges.length - 2);
}

// Share of the range of the colours that lies below a value, from 0 to 1.
function shareOf({ range: [low, high] }, value) {
  return high > low ? Math.max(0, Math.min(1, (value / 2 - low / 2) / (high / 2 - low / 2))) : 0.5;
}

// Draw a map into a box of pixels: each pixel of the screen has the colour of its cell.
function drawMap(pen, map, { x, y }, box, ratio) {
  const width = Math.max(1, Math.round(box.width * ratio)), height = Math.max(1, Math.round(box.height * ratio));
  const canvas = element("canvas", { width, height }), brush = canvas.getContext("2d"), image = brush.createImageData(width, height), colours = shades(map);
  const across = borders(map.x), up = borders(map.y);
  const columns = Array.from({ length: width }, (_, k) => cellOf(across, x.value(x.coordinateAt(box.left + (k + 0.5) / ratio))));
  for (let row = 0; row < height; row++) {
    const j = cellOf(up, y.value(y.coordinateAt(box.top + (row + 0.5) / ratio)));
    if (j < 0) continue;
    for (let k = 0; k < width; k++) {
      const value = columns[k] < 0 ? NaN : map.values[j * map.x.length + columns[k]];
      if (!Number.isFinite(value)) continue;
      image.data.set(colours[Math.round(255 * shareOf(map, value))], 4 * (row * width + k));
      image.data[4 * (row * width + k) + 3] = 255;
    }
  }
  brush.putImageData(image, 0, 0);
  pen.drawImage(canvas, box.left, box.top, box.width, box.height);
}

// Scale of the colours of a map, from the bottom of a box to its top.
function colourScale(map, box) {
  const ends = map.range[0] < map.range[1] ? map.range : padded(map.range[0], map.range[0], false, 0);
  return new Scale(false, ends, box.top + box.height, box.top);
}

function drawColourScale(pen, map, box, left, thickness) {
  const gradient = pen.createLinearGradient(0, box.top + box.height, 0, box.top);
  shades(map).forEach((shade, k) => gradient.addColorStop(k / 255, `rgb(${shade})`));
  pen.fillStyle = gradient;
  pen.fillRect(left, box.top, thickness, box.height);
}
