// Connect the page: read its data, listen to people, draw what changed.

import { ServiceBackend, WasmBackend, bytes, loadRuntime } from "./backend.js";
import { parseCsv, toCsv } from "./csv.js";
import { makeSortable } from "./drag.js";
import { featuresOf, makeDrawable, pictureOf } from "./drawing.js";
import { number } from "./format.js";
import { TileMap, tilesOf } from "./map.js";
import { encode } from "./schema.js";
import { Session } from "./session.js";
import { FEW, LARGE, drawItems, drawNetworks, drawTray, element } from "./view.js";

/** Most numbers that the networks read at once: orders x instances x features. */
const BUDGET = 2 ** 24;
/** Most instances in the tray. */
const TRAY = 60;

const by = (id) => document.getElementById(id);

/** Return the data of the page with the features of every instance as an array. */
function readData() {
  const data = JSON.parse(by("data").textContent);
  const features = data.shape.reduce((a, b) => a * b, 1);
  const all = new Float32Array(bytes(data.instances).buffer);
  data.values = data.display.map((_, i) => all.subarray(i * features, (i + 1) * features));
  return data;
}

class Page {
  constructor(session) {
    this.session = session;
    this.picked = [];
    this.found = null;
    this.turn = 0;
  }

  start() {
    const { session } = this;
    const { data } = session;
    by("set").append(
      ...data.sets.map((set, k) => element("option", { value: k, text: `${set.name}` })),
    );
    const { outputs } = data.networks[0];
    by("output").append(...outputs.map((name, k) => element("option", { value: k, text: name })));
    by("output-tool").hidden = outputs.length < 2;
    by("paste").hidden = data.schema === null;
    by("draw").hidden = data.pixels === null;
    by("text").hidden = !data.sentences;
    this.canvas = makeDrawable(by("canvas"));
    by("map").hidden = data.places === null;
    this.map = data.places && new TileMap(by("map"));
    this.fit();
    by("k").value = Math.min(3, session.items.length);
    document.documentElement.style.setProperty("--networks", data.networks.length);
    document.body.classList.add(data.kind, data.networks.length > 1 ? "several" : "single");
    this.listen();
    by("loading").hidden = true;
    by("main").hidden = false;
    return this.refresh();
  }

  /** Fit the tools and the map to the example set. */
  fit() {
    const { session } = this;
    const numbers = session.items.length * session.features;
    const orders = Math.max(1, Math.min(32, Math.floor(BUDGET / numbers)));
    by("lens").max = orders;
    by("lens-tool").hidden = orders < 2;
    by("best-tool").hidden = session.items.length > LARGE;
    session.orders = Math.min(session.orders, orders);
    this.map?.open(session.data.sets[session.number].rows.map((row) => session.data.places[row]));
  }

  listen() {
    const { session } = this;
    const change = (id, event, action) => by(id).addEventListener(event, action);
    change("set", "change", (e) => this.do(() => this.open(Number(e.target.value))));
    change("output", "change", (e) => this.do(() => (session.output = Number(e.target.value))));
    change("lens", "input", (e) => this.do(() => (session.orders = Number(e.target.value))));
    change("shuffle", "click", () => this.do(() => session.shuffle(), "Shuffled."));
    change("reset", "click", () => this.do(() => this.open(session.number), "Reset."));
    change("remove-region", "click", () => this.cut(true, "Removed."));
    change("keep-region", "click", () => this.cut(false, "Removed all others."));
    change("best", "click", () => this.best());
    change("keep", "click", () => this.do(() => session.keep(this.picked)));
    change("download", "click", () => this.download());
    change("add-rows", "click", () => this.paste());
    change("file", "change", (e) => this.read(e.target.files[0]));
    change("show-text", "click", () => this.showText());
    this.listenToDrops(by("paste"));
    change("add-drawing", "click", () => this.addDrawing());
    change("clear", "click", () => this.canvas.clear());
    by("tray").addEventListener("click", (e) => {
      const button = e.target.closest("[data-row]");
      if (button) this.do(() => session.add(Number(button.dataset.row)), "Added.");
    });
    by("items").addEventListener("click", (e) => {
      const button = e.target.closest("[data-action]");
      if (!button) return;
      const key = Number(button.closest("[data-key]").dataset.key);
      if (button.dataset.action === "pin") this.do(() => session.pin(key), "", true);
      else if (button.dataset.action === "edit") this.edit(key, button.closest("[data-key]"));
      else this.do(() => session.remove(key), "Removed.");
    });
    by("items").addEventListener("keydown", (e) => {
      if (e.key !== "Delete" || !e.target.closest("[data-handle]")) return;
      const row = e.target.closest("[data-key]");
      const next = row.nextElementSibling ?? row.previousElementSibling;
      this.do(() => session.remove(Number(row.dataset.key)), "Removed.");
      next?.querySelector("[data-handle]").focus();
    });
    makeSortable(by("items"), {
      move: (key, place) => {
        if (session.items.length > LARGE) return; // only some are shown
        if (session.move(key, place)) this.do(() => {}, "", true);
      },
      done: () => this.announce("Moved."),
    });
  }

  listenToDrops(area) {
    const over = (event) => {
      event.preventDefault();
      area.classList.toggle("over", event.type === "dragover");
    };
    area.addEventListener("dragover", over);
    area.addEventListener("dragleave", over);
    area.addEventListener("drop", (event) => {
      over(event);
      const [file] = event.dataTransfer.files;
      if (file) this.read(file);
      else by("rows").value = event.dataTransfer.getData("text/plain");
    });
  }

  open(k) {
    this.session.open(k);
    this.fit();
  }

  /** Remove the selected region of the map, or all but this region. */
  cut(drop, news) {
    const keys = this.map.selected.map(({ key }) => key);
    this.map.select(null);
    return this.do(() => this.session.keep(keys, drop), news);
  }

  /** Change the session, then draw it. */
  do(action, news = "", keepPicked = false) {
    action();
    if (!keepPicked) this.picked = [];
    return this.refresh(news);
  }

  async refresh(news = "") {
    this.turn += 1;
    const { turn } = this;
    const { session } = this;
    by("lens-value").textContent = session.orders;
    this.draw(null);
    try {
      const found = await session.explain();
      if (turn !== this.turn) return; // something newer is under way
      this.found = found;
      this.draw(found);
      drawNetworks(by("networks"), session.data, found, session.label());
      document.body.dataset.turn = turn;
      if (news) this.announce(news);
    } catch (error) {
      this.fail(error);
    }
  }

  draw(found) {
    const { session } = this;
    drawItems(by("items"), session, found, this.picked);
    drawTray(by("tray"), session.data, this.trayRows());
    if (found) this.map?.show(tilesOf(session, found[0].values));
    const part = session.items.length > LARGE;
    document.body.classList.toggle("partial", part);
    by("hint").hidden = part;
    by("part").hidden = !part;
    by("part").textContent = `The ${FEW} of ${session.items.length} instances with the highest and the lowest values.`;
    by("keep").hidden = !this.picked.length;
    by("empty").hidden = session.items.length > 0;
    if (!this.picked.length) by("best-text").textContent = "";
  }

  /** Return the tray and the instances of the example that are not in the set. */
  trayRows() {
    const { data, items, number: k } = this.session;
    const present = new Set(items.map((item) => item.row));
    const removed = data.sets[k].rows.filter((row) => !present.has(row));
    return [...new Set([...removed, ...data.tray])].slice(0, TRAY);
  }

  async best() {
    const wanted = Math.max(1, Number(by("k").value) || 1);
    try {
      const { keys, value } = await this.session.best(wanted);
      this.picked = keys;
      this.draw(this.found);
      const text = `${keys.length} selected, together ${number(value)}`;
      by("best-text").textContent = text;
      by("best-text").dataset.value = value;
      this.announce(text);
    } catch (error) {
      this.fail(error);
    }
  }

  paste() {
    const { data } = this.session;
    by("paste-error").textContent = "";
    try {
      const rows = parseCsv(by("rows").value);
      const encoded = rows.map((row) => Float32Array.from(encode(row, data.schema)));
      encoded.forEach((values, n) => {
        const shown = data.schema.features.slice(0, 4).map((f) => `${f.name} ${rows[n][f.name]}`);
        this.session.add(
          this.session.newRow({ label: `pasted row ${n + 1}`, features: shown }, values),
        );
      });
      this.do(() => {}, `${rows.length} rows added.`);
    } catch (error) {
      by("paste-error").textContent = error.message;
    }
  }

  /** Add the rows of a file. */
  async read(file) {
    by("paste").open = true;
    by("rows").value = await file.text();
    this.paste();
  }

  /** Return new rows for the sentences of a text, which the service embeds. */
  async embed(text, split) {
    by("text-error").textContent = "";
    try {
      const found = await this.session.backends[0].embed(text, split);
      return found.map(({ label, values }) => this.session.newRow({ label }, values));
    } catch (error) {
      by("text").open = true;
      by("text-error").textContent = error.message;
      return [];
    }
  }

  async showText() {
    const rows = await this.embed(by("document").value, true);
    if (rows.length) this.do(() => this.session.show(rows), `${rows.length} sentences.`);
  }

  /** Let people rewrite a sentence; Enter takes it, Escape leaves it as it was. */
  edit(key, item) {
    const face = item.querySelector(".face");
    const { row } = this.session.items.find((one) => one.key === key);
    const field = element("textarea", { class: "edit", rows: 2, "aria-label": "Sentence" });
    field.value = this.session.data.display[row].label;
    const leave = () => field.replaceWith(face);
    field.addEventListener("blur", leave);
    field.addEventListener("keydown", async (event) => {
      if (event.key === "Escape") field.blur();
      if (event.key !== "Enter") return;
      event.preventDefault();
      const [changed] = await this.embed(field.value, false);
      if (changed === undefined) return;
      field.removeEventListener("blur", leave); // its row is removed
      this.do(() => this.session.replace(key, changed), "Changed.");
    });
    face.replaceWith(field);
    field.focus();
  }

  addDrawing() {
    const { data } = this.session;
    const { height, width } = data.pixels;
    const pixels = this.canvas.read(height, width);
    if (!pixels) return;
    const display = { label: "new", image: pictureOf(pixels, height, width), pixels };
    const row = this.session.newRow(display, featuresOf(pixels, data.pixels));
    this.do(() => this.session.add(row), "Added.");
    this.canvas.clear();
  }

  download() {
    const { session, found } = this;
    const names = session.data.networks.map((network) => `added_value ${network.name}`);
    const rows = session.items.map((item, i) => [
      i + 1,
      session.data.display[item.row].label,
      ...found.map((network) => network.values[i]),
    ]);
    const text = toCsv(["position", "instance", ...names], rows);
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    element("a", { href: url, download: "values.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  announce(text) {
    const said = (this.found ?? []).map((network, n) => {
      return `${this.session.data.networks[n].name} predicts ${number(network.prediction)}`;
    });
    by("news").textContent = [text, ...said].join(" ");
  }

  fail(error) {
    by("loading").hidden = false;
    by("loading").textContent = `The page cannot compute: ${error.message}`;
    throw error;
  }
}

async function backendsOf({ networks, shape }) {
  if (networks[0].service) return networks.map(({ service }) => new ServiceBackend(service, shape));
  const ort = await loadRuntime(by("runtime-script").textContent, by("runtime-wasm").textContent);
  return networks.map(({ graphs }) => new WasmBackend(ort, graphs, shape));
}

async function main() {
  const data = readData();
  const backends = await backendsOf(data);
  const page = new Page(new Session(data, backends));
  globalThis.capnets = page;
  await page.start();
}

main().catch((error) => {
  by("loading").textContent = `The page cannot start: ${error.message}`;
  console.error(error);
});
