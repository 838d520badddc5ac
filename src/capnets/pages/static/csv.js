// Read and write comma-separated values (RFC 4180).

/** Return the rows of a text as objects, named by its first line; tabs are accepted too. */
export function parseCsv(text) {
  const comma = text.split("\n", 1)[0].includes("\t") ? "\t" : ",";
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  const closeRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0].trim() !== "") rows.push(row);
    row = [];
    cell = "";
  };
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') {
        cell += '"';
        i += 1;
      } else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === comma) {
      row.push(cell);
      cell = "";
    } else if (c === "\n") closeRow();
    else if (c !== "\r") cell += c;
  }
  closeRow();
  if (quoted) throw new Error("a quotation mark is not closed");
  if (rows.length < 2) throw new Error("paste a line with column names and at least one row");
  const [names, ...body] = rows;
  return body.map((cells, n) => {
    if (cells.length !== names.length) {
      throw new Error(`row ${n + 1} has ${cells.length} cells, but there are ${names.length} names`);
    }
    return Object.fromEntries(names.map((name, k) => [name.trim(), cells[k]]));
  });
}

/** Return a table as text. */
export function toCsv(names, rows) {
  const quote = (cell) => {
    const text = String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(quote).join(",")).join("\n") + "\n";
}
