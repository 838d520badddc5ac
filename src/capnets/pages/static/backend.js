// Compute with a network. Every back-end offers the same two calls:
//
//   infer(instances, mask) -> {prediction, values}   sets x size x features in
//   step(instance, state)  -> {value, state}         one instance per set in
//
// WasmBackend runs the ONNX graphs of the page. ServiceBackend asks the service that sent the page; it
// offers the first call only, which is all that the page needs, and turns text into instances.

/** Return the bytes of a base64 text. */
export function bytes(text) {
  const binary = atob(text.trim());
  const found = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) found[i] = binary.charCodeAt(i);
  return found;
}

/** Return the bytes of a compressed base64 text. */
export async function inflate(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Load onnxruntime-web from the texts that the page holds. */
export async function loadRuntime(scriptText, wasmText) {
  const [script, wasm] = await Promise.all([inflate(scriptText), inflate(wasmText)]);
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const ort = await import(url);
  URL.revokeObjectURL(url);
  ort.env.wasm.wasmBinary = wasm.buffer;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return ort;
}

export class WasmBackend {
  constructor(ort, graphs, shape) {
    this.ort = ort;
    this.graphs = graphs;
    this.shape = shape;
    this.sessions = {};
    this.last = Promise.resolve();
  }

  session(name) {
    if (!(name in this.graphs)) throw new Error(`this network has no graph ${name}`);
    this.sessions[name] ??= inflate(this.graphs[name]).then((graph) =>
      this.ort.InferenceSession.create(graph, { executionProviders: ["wasm"] }),
    );
    return this.sessions[name];
  }

  // A session computes one batch at a time.
  run(name, feeds) {
    const done = this.last.then(async () => (await this.session(name)).run(feeds));
    this.last = done.catch(() => undefined);
    return done;
  }

  async infer(instances, mask, sets, size) {
    const { Tensor } = this.ort;
    const found = await this.run("sets", {
      instances: new Tensor("float32", instances, [sets, size, ...this.shape]),
      mask: new Tensor("bool", mask, [sets, size]),
    });
    return { prediction: found.prediction.data, values: found.added_values.data };
  }

  // The state before the first instance is null.
  async step(instance, state, sets) {
    const { Tensor } = this.ort;
    const session = await this.session("step");
    const { type, shape } = session.inputMetadata.find((one) => one.name === "state");
    const Numbers = type === "float64" ? Float64Array : Float32Array;
    const found = await this.run("step", {
      instance: new Tensor("float32", instance, [sets, ...this.shape]),
      state: new Tensor(type, state ?? new Numbers(sets * shape[1]), [sets, shape[1]]),
    });
    return { value: found.value.data, state: found.next_state.data };
  }
}

export class ServiceBackend {
  constructor(name, shape) {
    this.address = `/v2/models/${encodeURIComponent(name)}`;
    this.shape = shape;
  }

  async infer(instances, mask, sets, size) {
    const inputs = [
      ["instances", "FP32", [sets, size, ...this.shape], Array.from(instances)],
      ["mask", "BOOL", [sets, size], Array.from(mask, Boolean)],
    ].map(([name, datatype, shape, data]) => ({ name, datatype, shape, data }));
    const found = await this.post("infer", { inputs });
    const [prediction, values] = found.outputs.map(({ data }) => Float32Array.from(data));
    return { prediction, values };
  }

  /** Return the sentences of a text with their features: [{label, values}]. */
  async embed(text, split) {
    const { sentences, vectors } = await this.post("embed", { text, split });
    return sentences.map((label, i) => ({ label, values: Float32Array.from(vectors[i]) }));
  }

  async post(verb, body) {
    const answer = await fetch(`${this.address}/${verb}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }
}
