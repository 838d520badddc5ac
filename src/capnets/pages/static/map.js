// Draw tiles at their places, coloured by value, and let people select a rectangle of them.

import { number } from "./format.js";

const RAISES = [0, 114, 178];
const LOWERS = [213, 94, 0];
/** Share of the tiles whose values the colours cover. */
const COVERED = 0.99;
/** Largest width of the image, in pixels. */
const WIDTH = 1200;

/** Return the value from which colours are full. */
export function fullAt(values) {
  const sizes = values.map(Math.abs).sort((a, b) => a - b);
  return sizes[Math.floor(COVERED * (sizes.length - 1))] || 1;
}

/** Return the colour of a value: white at 0. */
export function colourOf(value, full) {
  const strength = Math.min(1, Math.abs(value) / full);
  const end = value < 0 ? LOWERS : RAISES;
  return `rgb(${end.map((one) => Math.round(255 + strength * (one - 255))).join(" ")})`;
}

/** Return the tiles whose centres lie in a rectangle; its left and upper edges belong to it. */
export function within(tiles, { left, top, right, bottom }) {
  return tiles.filter(({ x, y, side }) => {
    const [across, down] = [x + side / 2, y + side / 2];
    return across >= left && across < right && down >= top && down < bottom;
  });
}

/** A map on a canvas. Tiles are {key, label, x, y, side, value}. */
export class TileMap {
  constructor(area) {
    this.area = area;
    this.canvas = area.querySelector("canvas");
    this.pen = this.canvas.getContext("2d");
    this.region = null;
    this.tiles = [];
    this.listen();
  }

  /** Fit the canvas to places that may be drawn. */
  open(places) {
    const [left, top] = [0, 1].map((axis) => Math.min(...places.map((place) => place[axis])));
    const right = Math.max(...places.map(([x, , side]) => x + side));
    const bottom = Math.max(...places.map(([, y, side]) => y + side));
    this.box = { left, top, right, bottom };
    this.side = places[0][2];
    this.scale = Math.min(WIDTH / Math.max(right - left, bottom - top), 16 / this.side);
    this.canvas.width = Math.round((right - left) * this.scale);
    this.canvas.height = Math.round((bottom - top) * this.scale);
    this.region = null;
  }

  show(tiles) {
    this.tiles = tiles;
    this.draw();
    this.describe();
  }

  get selected() {
    return this.region ? within(this.tiles, this.region) : [];
  }

  select(region) {
    this.region = region;
    this.draw();
    this.describe();
  }

  draw() {
    const { pen, canvas, box, scale } = this;
    const full = fullAt(this.tiles.map(({ value }) => value));
    pen.clearRect(0, 0, canvas.width, canvas.height);
    for (const { x, y, side, value } of this.tiles) {
      const [from, to] = [(x - box.left) * scale, (y - box.top) * scale].map(Math.round);
      const width = Math.round((x + side - box.left) * scale) - from;
      const height = Math.round((y + side - box.top) * scale) - to;
      pen.fillStyle = colourOf(value, full);
      pen.fillRect(from, to, Math.max(1, width), Math.max(1, height));
    }
    if (this.region) {
      const { left, top, right, bottom } = this.region;
      const edges = [left - box.left, top - box.top, right - left, bottom - top];
      pen.lineWidth = Math.max(2, canvas.width / 300);
      pen.strokeStyle = "#1b1f24";
      pen.strokeRect(...edges.map((one) => one * scale));
    }
    this.area.querySelector(".low").textContent = number(-full);
    this.area.querySelector(".high").textContent = number(full, true);
  }

  describe() {
    const total = (tiles) => tiles.reduce((sum, { value }) => sum + value, 0);
    const { selected, tiles } = this;
    const every = number(total(tiles));
    const text = this.region
      ? `${selected.length} of ${tiles.length} tiles are selected. They add ${number(total(selected), true)} of ${every}.`
      : `All ${tiles.length} tiles add ${every}. Drag a rectangle to add up a region.`;
    this.area.querySelector("[role=status]").textContent = text;
    this.area.dataset.sum = this.region ? total(selected) : total(tiles);
    for (const button of this.area.querySelectorAll("button")) button.disabled = !selected.length;
  }

  /** Return the coordinates of a pointer. */
  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    const x = this.box.left + ((event.clientX - frame.left) / frame.width) * (this.box.right - this.box.left);
    const y = this.box.top + ((event.clientY - frame.top) / frame.height) * (this.box.bottom - this.box.top);
    return [x, y];
  }

  listen() {
    const { canvas } = this;
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = this.at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = this.at(event);
      if (!start) {
        const [tile] = this.tiles.filter((t) => x >= t.x && x < t.x + t.side && y >= t.y && y < t.y + t.side);
        canvas.title = tile ? `${tile.label} adds ${number(tile.value, true)}` : "";
        return;
      }
      const [left, right] = [x, start[0]].sort((a, b) => a - b);
      const [top, bottom] = [y, start[1]].sort((a, b) => a - b);
      this.select({ left, top, right, bottom });
    });
    const stop = (event) => {
      const [x, y] = this.at(event);
      const still = start && Math.hypot(x - start[0], y - start[1]) < this.side / 2;
      start = null;
      if (still) this.select(null);
    };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", () => (start = null));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** Move the selection by a tile; with Shift, change its size. Escape clears it. */
  key(event) {
    if (event.key === "Escape") return this.select(null);
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!(event.key in steps)) return undefined;
    event.preventDefault();
    const { left, top, right, bottom } = this.region ?? this.middle();
    const [across, down] = steps[event.key].map((one) => one * this.side);
    const moved = event.shiftKey ? 0 : 1;
    return this.select({
      left: left + moved * across,
      top: top + moved * down,
      right: Math.max(right + across, left + this.side),
      bottom: Math.max(bottom + down, top + this.side),
    });
  }

  /** Return the middle ninth of the map. */
  middle() {
    const { left, top, right, bottom } = this.box;
    const [across, down] = [(right - left) / 3, (bottom - top) / 3];
    return { left: left + across, top: top + down, right: right - across, bottom: bottom - down };
  }
}

/** Return the tiles of a session with the values of its first network. */
export function tilesOf({ items, data }, values) {
  return items.map(({ key, row }, i) => {
    const [x, y, side] = data.places[row];
    return { key, label: data.display[row].label, x, y, side, value: values[i] };
  });
}
