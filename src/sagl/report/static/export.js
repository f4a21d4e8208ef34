// What leaves the page: files that the browser writes itself.

// `sample` as in the run's own labels.csv: the id.
const CSV_COLUMNS = ["row", "sample", "cluster", "name", "confidence", "wrong"];

function labelsCsv(data, memory, rows) {
  const { cluster, confidence, ids, row: original } = data.arrays;
  const lines = [CSV_COLUMNS.join(",")];
  for (const row of rows) {
    const k = cluster[row];
    lines.push(
      [
        original[row],
        csvField(ids[row]),
        k,
        csvField(memory.names.get(k) ?? ""),
        confidence[row].toPrecision(7),
        memory.wrong.has(row) ? 1 : 0,
      ].join(","),
    );
  }
  return lines.join("\n") + "\n";
}

function csvField(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// What `sagl report RUN --names FILE` and sagl.report.names.read_names read back.
function namesJson(data, memory) {
  const wrong = [...memory.wrong].sort((a, b) => a - b);
  const mark = (row) => ({ row: data.arrays.row[row], sample: data.arrays.ids[row] });
  const names = {
    format: "sagl-names",
    version: 1,
    run: data.run,
    clusters: Object.fromEntries(memory.names),
    wrong: wrong.map(mark),
  };
  return JSON.stringify(names, null, 2) + "\n";
}

function selectionJson(data, memory, rows) {
  const { cluster, confidence, ids, row: original } = data.arrays;
  const samples = rows.map((row) => ({
    row: original[row],
    sample: ids[row],
    cluster: cluster[row],
    name: memory.names.get(cluster[row]) ?? null,
    confidence: confidence[row],
    wrong: memory.wrong.has(row),
  }));
  return JSON.stringify({ run: data.run, samples }, null, 2) + "\n";
}

function download(fileName, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = fileName;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
