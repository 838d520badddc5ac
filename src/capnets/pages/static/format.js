// Numbers as people read them.

/** Return a number with three significant digits and a minus sign. */
export function number(value, signed = false) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size < 1e-9 ? 0 : Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(size))));
  const text = size.toFixed(digits);
  if (Number(text) === 0) return "0";
  const sign = value < 0 ? "−" : signed ? "+" : "";
  return sign + text;
}

/** Return a value with as many decimals as the largest of its column needs. */
export function aligned(value, largest) {
  const digits = largest < 1e-9 ? 0 : Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(largest))));
  const text = Math.abs(value).toFixed(digits);
  const sign = Number(text) === 0 ? "" : value < 0 ? "−" : "+";
  return sign + text;
}
