// Draw the state of a session; every function reads state and changes elements only.

/** Sets of more instances show the FEW with the highest and the lowest values only. */
export const LARGE = 200;
export const FEW = 20;

import { aligned, number } from "./format.js";

/** Return a new element with attributes, text and children. */
export function element(tag, { text, ...attributes } = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  found.append(...children);
  return found;
}

/** Return the picture or the words of an instance. */
export function face(display) {
  if (display.image) {
    return element(
      "span",
      { class: "face picture" },
      element("img", { src: display.image, alt: "" }),
      element("span", { text: display.label }),
    );
  }
  const words = element("span", { class: "face words" }, element("span", { text: display.label }));
  if (display.features) {
    words.append(element("small", { text: display.features.join(" · ") }));
  }
  return words;
}

/** Return the range that all bars of all networks fit into. */
export function scale(found) {
  const points = found.flatMap((network) => {
    const ends = bars(network).flatMap(({ start, end }, i) => {
      return [start, end - network.spreads[i], end + network.spreads[i]];
    });
    return isLarge(network) ? ends : [network.baseline, network.prediction, ...ends];
  });
  const low = points.reduce((a, b) => Math.min(a, b), Infinity);
  const high = points.reduce((a, b) => Math.max(a, b), -Infinity);
  const room = (high - low) * 0.02 || 0.5;
  return { low: low - room, high: high + room };
}

function isLarge({ values }) {
  return values.length > LARGE;
}

/** Return where each bar starts and ends: a running sum, or from 0 if not all are shown. */
export function bars(network) {
  if (isLarge(network)) return network.values.map((value) => ({ start: 0, end: value }));
  return running(network);
}

/** Return the places of the instances to show; before there are values, all that may stay. */
export function shownPlaces(found, many) {
  const every = [...Array(many).keys()];
  if (many <= LARGE) return every;
  if (!found) return null;
  const { values } = found[0];
  const falling = every.sort((a, b) => values[b] - values[a]);
  return [...falling.slice(0, FEW / 2), ...falling.slice(-FEW / 2)];
}

/** Return where each instance moves the prediction, from the baseline on. */
export function running(network) {
  let sum = network.baseline;
  return network.values.map((value) => {
    const start = sum;
    sum += value;
    return { start, end: sum };
  });
}

export function drawNetworks(container, data, found, label) {
  const every = found.flatMap((network) => network.predictions);
  container.replaceChildren(
    ...found.map((network, n) => {
      const about = data.networks[n];
      const card = element("article", { class: "network" }, element("h2", { text: about.name }));
      card.dataset.prediction = network.prediction;
      const line = element("p", { class: "prediction" });
      if (network.probabilities.length) {
        const top = network.probabilities.reduce((a, b) => (b.share > a.share ? b : a));
        if (about.kind === "class") line.append("predicts ", element("b", { text: top.name }), ", ");
        const own = network.probabilities.find((one) => one.name === about.outputs[network.output]);
        line.append(`probability of ${own.name} `, element("b", { text: own.share.toFixed(3) }));
        card.dataset.probability = own.share;
      } else {
        line.append("predicts ", element("b", { text: number(network.prediction) }));
        if (data.unit) line.append(` (${data.unit})`);
      }
      card.append(line);
      const spread = deviationText(network);
      const logit = network.probabilities.length ? `logit ${number(network.prediction)}` : "";
      const parts = [logit, spread, label === null ? "" : `label ${label}`, baselineText(about, network)];
      card.append(element("p", { class: "soft", text: parts.filter(Boolean).join(", ") }));
      if (network.predictions.length > 1) card.append(dots(network, Math.min(...every), Math.max(...every)));
      else if (about.caution) card.append(cautionOf(about));
      return card;
    }),
  );
}

function cautionOf({ caution }) {
  return element(
    "details",
    { class: "soft" },
    element("summary", { text: "Caution" }),
    element("p", { text: caution.replace("Caution: ", "") }),
  );
}

function deviationText(network) {
  const { predictions } = network;
  if (predictions.length < 2) return "";
  const low = Math.min(...predictions);
  const high = Math.max(...predictions);
  return `${number(low)} to ${number(high)} over ${predictions.length} orders`;
}

function baselineText(about, network) {
  const kind = about.additive ? "" : "differences of prefixes";
  const from = about.additive ? `baseline ${number(network.baseline)}` : "";
  return [from, kind].filter(Boolean).join(", ");
}

/** Return a dot per order, on one scale for all networks. */
function dots(network, low, high) {
  const strip = element("div", { class: "dots", role: "img" });
  strip.setAttribute("aria-label", `Predictions of ${network.predictions.length} orders`);
  for (const prediction of network.predictions) {
    const dot = element("span");
    dot.style.left = `${high > low ? (100 * (prediction - low)) / (high - low) : 50}%`;
    strip.append(dot);
  }
  return strip;
}

/** Bring the rows of the list up to date without making them anew. */
export function drawItems(list, session, found, picked) {
  const places = shownPlaces(found, session.items.length);
  if (!places) return; // the rows stay until there are values
  const rows = new Map([...list.children].map((row) => [Number(row.dataset.key), row]));
  const drawing = found && {
    found,
    range: scale(found),
    bars: found.map(bars),
    largest: found.flatMap((n) => n.values.map(Math.abs)).reduce((a, b) => Math.max(a, b), 1e-12),
  };
  places.forEach((place, line) => {
    const item = session.items[place];
    const row = rows.get(item.key) ?? newRow(session, item);
    rows.delete(item.key);
    if (list.children[line] !== row) list.insertBefore(row, list.children[line] ?? null);
    updateRow(row, session, item, place, drawing, picked);
  });
  for (const row of rows.values()) row.remove();
}

function newRow(session, item) {
  const display = session.data.display[item.row];
  const handle = element("button", { type: "button", class: "handle", "data-handle": "" });
  const tracks = session.data.networks.map((network) =>
    element(
      "div",
      { class: "track" },
      element("span", { class: "network-name", text: network.name }),
      element(
        "div",
        { class: "plot" },
        element("span", { class: "edge from" }),
        element("span", { class: "edge to" }),
        element("span", { class: "bar" }),
        element("span", { class: "whisker", hidden: "" }),
      ),
      element("span", { class: "value" }),
    ),
  );
  const row = element(
    "li",
    { class: "item", "data-key": item.key },
    handle,
    face(display),
    element("div", { class: "tracks" }, ...tracks),
    element(
      "span",
      { class: "actions" },
      ...(session.data.sentences ? [editButton(display)] : []),
      element("button", { type: "button", "data-action": "pin" }),
      element("button", { type: "button", "data-action": "remove", text: "✕" }),
    ),
  );
  row.querySelector("[data-action=remove]").setAttribute("aria-label", `Remove ${display.label}`);
  return row;
}

function editButton({ label }) {
  const button = element("button", { type: "button", "data-action": "edit", text: "✎" });
  button.setAttribute("aria-label", `Edit ${label}`);
  return button;
}

function updateRow(row, session, item, place, drawing, picked) {
  const { label } = session.data.display[item.row];
  const many = session.items.length;
  const handle = row.querySelector("[data-handle]");
  handle.textContent = place + 1;
  const rank = picked.indexOf(item.key);
  row.classList.toggle("picked", rank >= 0);
  row.classList.toggle("pinned", item.pinned);
  const pin = row.querySelector("[data-action=pin]");
  pin.textContent = item.pinned ? "●" : "○";
  pin.setAttribute("aria-pressed", item.pinned);
  pin.setAttribute("aria-label", `Pin ${label}`);
  if (!drawing || drawing.found.some((network) => network.values.length !== many)) return;
  const { found, range, largest } = drawing;
  row.dataset.values = JSON.stringify(found.map((network) => network.values[place]));
  const spoken = found.map((network) => aligned(network.values[place], largest)).join(", ");
  handle.setAttribute(
    "aria-label",
    `${label}, position ${place + 1} of ${many}, adds ${spoken}${many > LARGE ? "" : "; arrow keys move it"}`,
  );
  const share = (value) => (100 * (value - range.low)) / (range.high - range.low);
  row.querySelectorAll(".track").forEach((track, n) => {
    const network = found[n];
    const { start, end } = drawing.bars[n][place];
    const bar = track.querySelector(".bar");
    bar.classList.toggle("lowers", end < start);
    bar.style.left = `${share(Math.min(start, end))}%`;
    bar.style.width = `${share(Math.max(start, end)) - share(Math.min(start, end))}%`;
    track.querySelector(".from").style.left = `${share(many > LARGE ? 0 : network.baseline)}%`;
    track.querySelector(".to").style.left = `${share(many > LARGE ? 0 : network.prediction)}%`;
    const whisker = track.querySelector(".whisker");
    const spread = network.spreads[place];
    whisker.hidden = !(spread > 0);
    whisker.style.left = `${share(end - spread)}%`;
    whisker.style.width = `${share(end + spread) - share(end - spread)}%`;
    if (n === 0) {
      const words = row.querySelector(".face");
      words.classList.toggle("lowers", end < start);
      words.style.setProperty("--strength", `${Math.round((40 * Math.abs(end - start)) / largest)}%`);
    }
    const text = aligned(network.values[place], largest);
    track.querySelector(".value").textContent = text;
  });
}

export function drawTray(tray, data, rows) {
  tray.replaceChildren(
    ...rows.map((row) => {
      const display = data.display[row];
      const button = element("button", { type: "button", "data-row": row, title: display.label });
      button.setAttribute("aria-label", `Add ${display.label}`);
      button.append(face(display));
      return button;
    }),
  );
}
