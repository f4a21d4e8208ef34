// The samples of the run: how they come in, what is remembered, what leaves the page.

async function readPayload(element) {
  if (!window.DecompressionStream) {
    throw new Error("this browser is too old: it cannot unpack the samples");
  }
  const characters = atob(element.textContent);
  const packed = new Uint8Array(characters.length);
  for (let i = 0; i < packed.length; i++) packed[i] = characters.charCodeAt(i);
  element.remove(); // the text is as large as the data: let it go
  const stream = new Blob([packed]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).json();
}

// What a person says of clusters and samples: kept by the browser, under the run's
// checksum.

function createMemory(data) {
  const key = `sagl:${data.run}`;
  // What the page came with.
  const given = JSON.stringify([data.names, data.wrong, data.layerNames]);
  const numbered = (names) => new Map(Object.entries(names).map(([k, name]) => [+k, name]));
  const memory = {
    names: numbered(data.names),
    layerNames: new Map(Object.entries(data.layerNames)), // by "size of layer:cluster"
    wrong: new Set(data.wrong),
    said: [], // see corrections.js
    persistent: true,

    // Names are unique: one that another cluster has gets a number.
    rename(cluster, name) {
      const clean = name.trim();
      memory.names.delete(cluster);
      const others = new Set([...data.sizes.keys()].map(memory.nameOf));
      others.delete(data.labels[cluster]);
      let unique = clean;
      for (let number = 2; others.has(unique); number++) unique = `${clean} ${number}`;
      if (clean) memory.names.set(cluster, unique);
      save();
    },

    renameInLayer(key, name) {
      if (name.trim()) memory.layerNames.set(key, name.trim());
      else memory.layerNames.delete(key);
      save();
    },

    // To say the same again takes it back, if it has no more to it.
    say(saying) {
      const others = memory.said.filter((other) => !isSameSaying(other, saying));
      const again = others.length < memory.said.length && saying.kind !== "label";
      memory.said = again ? others : [...others, saying];
      save();
    },

    takeBack(saying) {
      memory.said = memory.said.filter((other) => other !== saying);
      save();
    },

    mark(rows, wrong) {
      for (const row of rows) {
        if (wrong) memory.wrong.add(row);
        else memory.wrong.delete(row);
      }
      save();
    },

    nameOf(cluster) {
      return memory.names.get(cluster) ?? data.labels[cluster];
    },
  };

  function save() {
    const { said } = memory;
    const names = Object.fromEntries(memory.names);
    const layerNames = Object.fromEntries(memory.layerNames);
    const wrong = [...memory.wrong].sort((a, b) => a - b);
    try {
      localStorage.setItem(key, JSON.stringify({ names, layerNames, wrong, said, given }));
    } catch {
      memory.persistent = false; // refused or full: the page says so
    }
  }

  try {
    const kept = JSON.parse(localStorage.getItem(key));
    if (kept) {
      // A page that was written anew, with other names in it, adds to what is kept.
      const anew = kept.given !== given;
      const names = anew ? { ...kept.names, ...data.names } : kept.names;
      const wrong = anew ? [...kept.wrong, ...data.wrong] : kept.wrong;
      const layerNames = { ...kept.layerNames, ...(anew ? data.layerNames : {}) };
      memory.names = numbered(names);
      memory.layerNames = new Map(Object.entries(layerNames));
      memory.said = (kept.said ?? []).filter((saying) => isSaid(saying, data));
      memory.wrong = new Set(wrong.filter((row) => row < data.ids.length));
    } else {
      localStorage.setItem(`${key}:probe`, "1");
      localStorage.removeItem(`${key}:probe`);
    }
  } catch {
    memory.persistent = false;
  }
  return memory;
}

// What leaves the page: files that the browser writes itself.

// `sample` as in the run's own labels.csv: the id.
const CSV_COLUMNS = ["row", "sample", "cluster", "name", "confidence", "wrong"];

function labelsCsv(data, memory, rows) {
  const { cluster, confidence, ids, row: original } = data;
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

// What `sagl report RUN --names FILE` and sagl.clusters.names.read_names read back.
function namesJson(data, memory) {
  const wrong = [...memory.wrong].sort((a, b) => a - b);
  const mark = (row) => ({ row: data.row[row], sample: data.ids[row] });
  const names = {
    format: "sagl-names",
    version: 1,
    run: data.run,
    clusters: Object.fromEntries(memory.names),
    wrong: wrong.map(mark),
    ...(memory.layerNames.size ? { layers: layerNamesOf(memory) } : {}),
  };
  return JSON.stringify(names, null, 2) + "\n";
}

// By size of the layer, then by number of the cluster.
function layerNamesOf(memory) {
  const layers = {};
  for (const [key, name] of memory.layerNames) {
    const [size, code] = key.split(":");
    (layers[size] ??= {})[code] = name;
  }
  return layers;
}

function selectionJson(data, memory, rows) {
  const { cluster, confidence, ids, row: original } = data;
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
