// Read and write comma-separated values (RFC 4180).

/** Return the rows of a text as objects, named by its first line; tabs are accepted too. */
export function parseCsv(text) {
  const comma = text.split("\n", 1)[0].includes("\t") ? "\t" : ",";
  const rows = cellsOf(text, comma).filter((row) => row.length > 1 || row[0].trim() !== "");
  if (rows.length < 2) throw new Error("paste a line with column names and at least one row");
  const [names, ...body] = rows;
  return body.map((cells, n) => {
    if (cells.length !== names.length) {
      throw new Error(`row ${n + 1} has ${cells.length} cells, but there are ${names.length} names`);
    }
    return Object.fromEntries(names.map((name, k) => [name.trim(), cells[k]]));
  });
}

/** Return the cells of every line. */
function cellsOf(text, comma) {
  const pattern = `("(?:[^"]|"")*"|[^"${comma}\r\n][^${comma}\r\n]*|)(${comma}|\r?\n|$)`;
  const cell = new RegExp(pattern, "gy");
  const rows = [[]];
  for (let end = comma; end !== ""; ) {
    const found = cell.exec(text);
    if (!found) throw new Error("a quotation mark is not closed");
    const [, written] = found;
    const quoted = written.startsWith('"');
    rows.at(-1).push(quoted ? written.slice(1, -1).replaceAll('""', '"') : written);
    end = found[2];
    if (end !== comma && end !== "") rows.push([]);
  }
  return rows;
}

/** Return a table as text. */
export function toCsv(names, rows) {
  const quote = (cell) => {
    const text = String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => `${row.map(quote).join(",")}\n`).join("");
}
