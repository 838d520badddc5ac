// Encode rows of a table as the network reads them; the oracle is capnets.ingest.encode.

/** Return the features of one row (an object of texts) by a schema. */
export function encode(row, schema) {
  const found = [];
  const refuse = schema.columns.missing === "refuse";
  for (const feature of schema.features) {
    if (!(feature.name in row)) {
      const names = schema.features.map((f) => f.name).join(", ");
      throw new Error(`column ${feature.name} is missing; the network reads ${names}`);
    }
    const text = row[feature.name].trim();
    if (feature.categories === null) found.push(encodeNumber(text, feature, refuse));
    else found.push(...encodeCategory(text, feature, refuse));
  }
  return found;
}

function encodeNumber(text, feature, refuse) {
  if (text === "") {
    if (refuse || feature.fill === null) throw new Error(`column ${feature.name}: no value`);
    return feature.fill - feature.offset;
  }
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`column ${feature.name}: ${text} is no number`);
  return value - feature.offset;
}

function encodeCategory(text, feature, refuse) {
  let place = feature.categories.indexOf(text);
  if (place < 0 && text !== "") {
    place = feature.categories.findIndex((category) => plainCategory(category) === plainCategory(text));
  }
  if (place < 0 && refuse) {
    const known = feature.categories.slice(0, 20).join(", ");
    throw new Error(`column ${feature.name}: unknown category ${text || "(empty)"}; known are ${known}`);
  }
  return feature.categories.map((_, k) => (k === place ? 1 : 0));
}

/** Return the name of a category that may be a number or a Boolean: 2.0 is 2, true is True. */
function plainCategory(text) {
  const spelled = text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();
  if (spelled === "True" || spelled === "False") return spelled;
  return /^-?\d+\.0$/.test(text) ? text.slice(0, -2) : text;
}
