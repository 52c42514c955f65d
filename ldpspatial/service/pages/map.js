/**
 * A map of cells: a canvas with one pixel a cell, stretched, and an SVG of outlines above it.
 *
 * Rows run south to north, columns west to east; the square may have a margin of cells around it.
 */

const SVG = "http://www.w3.org/2000/svg";
// From dark to light, each step as much lighter as the one before: also readable without colours.
const SHARES = ["#000004", "#2c115f", "#721f81", "#b73779", "#f1605d", "#feb078", "#fcfdbf"];
const WIDTHS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"];
export const COLOURS = { shares: SHARES, widths: WIDTHS };

/** Return the [red, green, blue] of a number from 0 to 1. */
export function colourOf(colours, value) {
  const at = Math.min(Math.max(value, 0), 1) * (colours.length - 1);
  const low = Math.min(Math.floor(at), colours.length - 2);
  const [from, to] = [channels(colours[low]), channels(colours[low + 1])];
  return from.map((channel, k) => Math.round(channel + (to[k] - channel) * (at - low)));
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Return 1, 2 or 5 times a power of ten, nearest to a fifth of a width. */
export function scaleLength(width) {
  const target = width / 5;
  const power = 10 ** Math.floor(Math.log10(target));
  const nearness = (factor) => Math.abs(Math.log((factor * power) / target));
  return [1, 2, 5, 10].sort((a, b) => nearness(a) - nearness(b))[0] * power;
}

/** Return a length in words. */
export function inMetres(length, kind) {
  if (kind !== "geographic") return `${Number(length.toPrecision(3))} units`;
  if (length >= 1000) return `${Number((length / 1000).toPrecision(3))} km`;
  return `${Number(length.toPrecision(3))} m`;
}

/** Return the path of a GeoJSON object, its coordinates turned into those of the map by `place`. */
export function outlinePath(geojson, place) {
  const pieces = [];
  const line = (points) => {
    let before = null;
    for (const point of points) {
      const [x, y] = place(point[0], point[1]);
      // A line that leaves on the far side of the earth comes back from the other: not drawn.
      const isJump = before !== null && Math.abs(x - before) > JUMP;
      pieces.push(`${before === null || isJump ? "M" : "L"}${x.toFixed(3)} ${y.toFixed(3)}`);
      before = x;
    }
  };
  const walk = (object) => {
    if (!object) return;
    [object.features ?? object.geometries ?? []].flat().forEach(walk);
    walk(object.geometry);
    const at = object.coordinates;
    if (object.type === "LineString") line(at);
    if (object.type === "MultiLineString" || object.type === "Polygon") at.forEach(line);
    if (object.type === "MultiPolygon") at.forEach((polygon) => polygon.forEach(line));
  };
  walk(geojson);
  return pieces.join("");
}

const JUMP = 50; // map widths

/** One map on the page. */
export class CellMap {
  /**
   * @param {HTMLElement} place where it is drawn.
   * @param {object} grid `cells`, `kind`, `south`, `west`, `height`, `width`, `cell_m`.
   * @param {number} margin cells around the square.
   */
  constructor(place, grid, margin = 0) {
    this.grid = grid;
    this.margin = margin;
    this.side = grid.cells + 2 * margin;
    place.replaceChildren();
    place.classList.add("map");
    this.canvas = document.createElement("canvas");
    this.canvas.width = this.side;
    this.canvas.height = this.side;
    this.canvas.setAttribute("aria-hidden", "true"); // the table below says the same
    const [height, width] = grid.cell_m;
    this.drawing = element("svg", { viewBox: `0 0 ${this.side} ${this.side}` });
    this.drawing.setAttribute("preserveAspectRatio", "none");
    this.drawing.setAttribute("aria-hidden", "true");
    place.append(this.canvas, this.drawing);
    place.style.aspectRatio = `${width} / ${height}`;
    if (margin > 0) {
      const box = { x: margin, y: margin, width: grid.cells, height: grid.cells };
      this.drawing.append(element("rect", { ...box, class: "square" }));
    }
    this.addScaleBar(place, width * this.side);
  }

  /** Fill the cells: `values` by row from the south; `top` has the lightest colour. */
  fill(values, top, colours, isSquareRoot) {
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(this.side, this.side);
    values.forEach((value, k) => {
      const row = this.side - 1 - Math.floor(k / this.side);
      const share = top > 0 ? value / top : 0;
      const colour = colourOf(colours, isSquareRoot ? Math.sqrt(share) : share);
      image.data.set([...colour, 255], 4 * (row * this.side + (k % this.side)));
    });
    context.putImageData(image, 0, 0);
  }

  /** Draw borders, rivers and streets over the map. */
  outline(geojson) {
    const { grid, side, margin } = this;
    const place = (lon, lat) => {
      let east = lon - grid.west;
      if (grid.kind === "geographic") east -= 360 * Math.round((east - grid.width / 2) / 360);
      const x = margin + (east / grid.width) * grid.cells;
      return [x, side - margin - ((lat - grid.south) / grid.height) * grid.cells];
    };
    let path = "";
    try {
      path = outlinePath(geojson, place);
    } catch {
      console.warn("The outlines are not GeoJSON: the map is drawn without them.");
    }
    if (path) this.drawing.append(element("path", { d: path, class: "outline" }));
  }

  /** Mark a cell, [row, col] of the square; null takes the mark away. */
  mark(kind, cell) {
    this.drawing.querySelectorAll(`.${kind}, .${kind}-inner`).forEach((old) => old.remove());
    if (!cell) return;
    const x = cell[1] + this.margin;
    const y = this.side - 1 - (cell[0] + this.margin);
    for (const name of kind === "chosen" ? [kind, `${kind}-inner`] : [kind]) {
      this.drawing.append(element("rect", { x, y, width: 1, height: 1, class: name }));
    }
  }

  /** Return the [row, col] of the square under a pointer; may lie in the margin. */
  cellAt(event) {
    const box = this.drawing.getBoundingClientRect();
    const col = Math.floor(((event.clientX - box.left) / box.width) * this.side) - this.margin;
    const fromTop = Math.floor(((event.clientY - box.top) / box.height) * this.side);
    return [this.side - 1 - fromTop - this.margin, col];
  }

  addScaleBar(place, width) {
    const length = scaleLength(width);
    const bar = document.createElement("div");
    bar.className = "scale-bar";
    bar.style.width = `${(100 * length) / width}%`;
    bar.textContent = inMetres(length, this.grid.kind);
    const line = element("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none" });
    line.setAttribute("aria-hidden", "true");
    line.append(element("path", { d: "M0 0V6M0 5H100M100 0V6", stroke: "#ffffff" }));
    bar.append(line);
    place.append(bar);
  }
}

/** Return the largest of many numbers: too many for the arguments of Math.max. */
export function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

/** Draw a legend: from 0 to `top`, which `text` writes. */
export function drawLegend(place, top, colours, isSquareRoot, text) {
  const bar = document.createElement("canvas");
  bar.width = 256;
  bar.height = 1;
  bar.setAttribute("aria-hidden", "true");
  const context = bar.getContext("2d");
  const image = context.createImageData(256, 1);
  for (let k = 0; k < 256; k++) {
    const share = k / 255;
    image.data.set([...colourOf(colours, isSquareRoot ? Math.sqrt(share) : share), 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
  const low = document.createElement("span");
  const high = document.createElement("span");
  low.textContent = text(0);
  high.textContent = text(top);
  place.classList.add("legend");
  place.replaceChildren(low, bar, high);
}

/** Make an element of SVG. */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Return the outlines that the service holds. */
export async function fetchOutlines() {
  const answer = await fetch("/outlines.geojson");
  return answer.ok ? answer.json() : null;
}
