// Names of clusters and marks of samples: kept by the browser, under the run's checksum.

function createMemory(data) {
  const key = `sagl:${data.run}`;
  const given = JSON.stringify([data.names, data.wrong]); // what the page came with
  const memory = {
    names: new Map(Object.entries(data.names).map(([k, name]) => [Number(k), name])),
    wrong: new Set(data.wrong),
    persistent: true,

    rename(cluster, name) {
      const clean = name.trim();
      if (clean) memory.names.set(cluster, clean);
      else memory.names.delete(cluster);
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
      return memory.names.get(cluster) ?? `Cluster ${cluster}`;
    },
  };

  function save() {
    const names = Object.fromEntries(memory.names);
    const wrong = [...memory.wrong].sort((a, b) => a - b);
    try {
      localStorage.setItem(key, JSON.stringify({ names, wrong, given }));
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
      memory.names = new Map(Object.entries(names).map(([k, name]) => [+k, name]));
      memory.wrong = new Set(wrong.filter((row) => row < data.n));
    } else {
      localStorage.setItem(`${key}:probe`, "1");
      localStorage.removeItem(`${key}:probe`);
    }
  } catch {
    memory.persistent = false;
  }
  return memory;
}
