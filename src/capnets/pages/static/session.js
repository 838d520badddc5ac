// The set on the page and what the networks say about it; nothing here touches the document.

import { draw, generator, shuffled } from "./orders.js";

export class Session {
  constructor(data, backends) {
    this.data = data;
    this.backends = backends;
    this.features = data.shape.reduce((a, b) => a * b, 1);
    this.rows = [];
    this.output = 0;
    this.orders = 1;
    this.seed = 0;
    this.nextKey = 0;
    this.open(0);
  }

  /** Show an example set. */
  open(number) {
    this.number = number;
    this.show(this.data.sets[number].rows);
  }

  /** Show other rows in place of the set. */
  show(rows) {
    this.items = rows.map((row) => this.item(row));
  }

  /** Put a row in the place of an instance. */
  replace(key, row) {
    this.items = this.items.map((item) =>
      item.key === key ? { ...this.item(row), pinned: item.pinned } : item,
    );
  }

  /** Make a row of the page's table: how it is displayed, and its features. */
  newRow(display, values) {
    this.data.display.push(display);
    this.data.values.push(values);
    return this.data.values.length - 1;
  }

  item(row) {
    this.nextKey += 1;
    return { key: this.nextKey, row, pinned: false };
  }

  /** Return the label of the example set while it is unchanged but for its order. */
  label() {
    const example = this.data.sets[this.number];
    const sorted = (rows) => [...rows].sort((a, b) => a - b).join();
    const same = sorted(example.rows) === sorted(this.items.map((item) => item.row));
    return same ? example.label : null;
  }

  move(key, place) {
    const from = this.items.findIndex((item) => item.key === key);
    const to = Math.max(0, Math.min(this.items.length - 1, place));
    if (from < 0 || from === to) return false;
    this.items.splice(to, 0, ...this.items.splice(from, 1));
    return true;
  }

  remove(key) {
    this.items = this.items.filter((item) => item.key !== key);
  }

  /** Keep these instances; with `drop`, all others. */
  keep(keys, drop = false) {
    const chosen = new Set(keys);
    this.items = this.items.filter((item) => chosen.has(item.key) !== drop);
  }

  add(row) {
    this.items.push(this.item(row));
  }

  pin(key) {
    const item = this.items.find((one) => one.key === key);
    item.pinned = !item.pinned;
  }

  shuffle() {
    this.seed += 1;
    const pinned = this.items.map((item) => item.pinned);
    const order = shuffled(this.items.length, pinned, generator(this.seed));
    this.items = order.map((i) => this.items[i]);
  }

  /** Return the features of sequences of rows as one batch. */
  batch(sequences) {
    const size = Math.max(...sequences.map((sequence) => sequence.length));
    const instances = new Float32Array(sequences.length * size * this.features);
    const mask = new Uint8Array(sequences.length * size);
    sequences.forEach((sequence, s) => {
      sequence.forEach((row, i) => {
        instances.set(this.data.values[row], (s * size + i) * this.features);
        mask[s * size + i] = 1;
      });
    });
    return { instances, mask, size };
  }

  /** Return predictions and added values of sequences of rows: [{prediction, values}]. */
  async infer(n, sequences) {
    const network = this.data.networks[n];
    const outputs = network.outputs.length;
    const filled = sequences.filter((sequence) => sequence.length > 0);
    let found = { prediction: [], values: [] };
    let size = 0;
    if (filled.length) {
      const batch = this.batch(filled);
      size = batch.size;
      found = await this.backends[n].infer(batch.instances, batch.mask, filled.length, size);
    }
    let s = 0;
    return sequences.map((sequence) => {
      if (!sequence.length) return { prediction: [...network.baseline], values: [] };
      const prediction = Array.from(found.prediction.slice(s * outputs, (s + 1) * outputs));
      const values = sequence.map((_, i) => {
        const start = (s * size + i) * outputs;
        return Array.from(found.values.slice(start, start + outputs));
      });
      s += 1;
      return { prediction, values };
    });
  }

  /** Return, per network, values and predictions over the orders of the lens. */
  async explain() {
    const rows = this.items.map((item) => item.row);
    const pinned = this.items.map((item) => item.pinned);
    const orders = draw(rows.length, this.orders, pinned, this.seed);
    const sequences = orders.map((order) => order.map((i) => rows[i]));
    const found = [];
    for (let n = 0; n < this.backends.length; n += 1) {
      found.push(this.summary(n, orders, await this.infer(n, sequences)));
    }
    return found;
  }

  summary(n, orders, answers) {
    const o = Math.min(this.output, this.data.networks[n].outputs.length - 1);
    const values = this.items.map(() => []);
    answers.forEach((answer, k) => {
      orders[k].forEach((i, place) => values[i].push(answer.values[place][o]));
    });
    const predictions = answers.map((answer) => answer.prediction[o]);
    const raw = this.data.networks[n].outputs.map((_, k) => mean(answers.map((a) => a.prediction[k])));
    return {
      output: o,
      baseline: this.data.networks[n].baseline[o],
      values: values.map(mean),
      spreads: values.map(deviation),
      prediction: mean(predictions),
      predictions,
      raw,
      probabilities: probabilities(this.data.networks[n], raw),
    };
  }

  /** Select up to k instances greedily by the first network; pinned ones are always selected. */
  async best(k) {
    const network = this.data.networks[0];
    const o = Math.min(this.output, network.outputs.length - 1);
    const chosen = this.items.filter((item) => item.pinned).map((item) => item.key);
    const sequence = (keys) =>
      this.items.filter((item) => keys.includes(item.key)).map((item) => item.row);
    const [start] = await this.infer(0, [sequence(chosen)]);
    let value = start.prediction[o];
    while (chosen.length < k) {
      const free = this.items.filter((item) => !chosen.includes(item.key));
      if (!free.length) break;
      const answers = await this.infer(0, free.map((item) => sequence([...chosen, item.key])));
      const gains = answers.map((answer) => answer.prediction[o] - value);
      const top = gains.indexOf(Math.max(...gains));
      if (gains[top] <= 0) break;
      chosen.push(free[top].key);
      value += gains[top];
    }
    return { keys: chosen, value };
  }
}

export function mean(numbers) {
  return numbers.reduce((a, b) => a + b, 0) / numbers.length;
}

export function deviation(numbers) {
  if (numbers.length < 2) return 0;
  const middle = mean(numbers);
  const squares = numbers.reduce((sum, x) => sum + (x - middle) ** 2, 0);
  return Math.sqrt(squares / (numbers.length - 1));
}

/** Return [{name, share}] of the classes or labels of a network; empty for amounts. */
export function probabilities(network, raw) {
  const logistic = (x) => 1 / (1 + Math.exp(-x));
  if (network.kind === "labels") {
    return raw.map((x, k) => ({ name: network.outputs[k], share: logistic(x) }));
  }
  if (network.kind !== "class") return [];
  if (raw.length === 1) {
    const share = logistic(raw[0]);
    return [1 - share, share].map((p, k) => ({ name: network.classes[k], share: p }));
  }
  const top = Math.max(...raw);
  const weights = raw.map((x) => Math.exp(x - top));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((w, k) => ({ name: network.classes[k], share: w / total }));
}
