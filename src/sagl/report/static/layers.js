// Layers: partitions from coarse to fine, each inside the next; one was asked for.

function createLayers(data, memory) {
  const { cluster, sizes } = data;
  const given = data.layers ?? { sizes: [sizes.length], parents: [[]], stability: [null] };
  const asked = given.sizes.indexOf(sizes.length);
  // The finest one is known of single samples only.
  const count = data.layers?.leaf ? given.sizes.length : asked + 1;
  const codes = []; // of each layer, made when they are wanted
  const counts = [];

  function holder(code, from, to) {
    for (let layer = from; layer > to; layer--) code = given.parents[layer][code];
    return code;
  }

  const layers = {
    asked,
    count,
    sizes: given.sizes,
    stability: given.stability,

    codes(layer) {
      if (layer === asked) return cluster;
      if (layer > asked) return data.layers.leaf;
      codes[layer] ??= cluster.map((k) => holder(k, asked, layer));
      return codes[layer];
    },

    // Samples in each cluster of a layer: all of the run's, as far as that is known.
    counts(layer) {
      if (counts[layer]) return counts[layer];
      const found = new Array(given.sizes[layer]).fill(0);
      if (layer > asked) for (const code of layers.codes(layer)) found[code] += 1;
      else sizes.forEach((size, k) => (found[holder(k, asked, layer)] += size));
      return (counts[layer] = found);
    },

    parent: (layer, code) => (layer > 0 ? given.parents[layer][code] : null),

    children(layer, code) {
      if (layer + 1 >= count) return [];
      const size = layers.counts(layer + 1);
      return [...size.keys()]
        .filter((child) => given.parents[layer + 1][child] === code && size[child] > 0)
        .sort((a, b) => size[b] - size[a]);
    },

    key: (layer, code) => `${given.sizes[layer]}:${code}`,

    nameOf(layer, code) {
      if (layer === asked) return memory.nameOf(code);
      return memory.layerNames.get(layers.key(layer, code)) ?? layers.derivedName(layer, code);
    },

    // A cluster of a coarse layer is called after those in it, the largest first.
    derivedName(layer, code) {
      if (layer > asked) {
        const whole = given.parents[layer][code];
        const halves = given.parents[layer].filter((k) => k === whole).length;
        const part = halves > 1 ? `, part ${code < sizes.length ? 1 : 2}` : "";
        return memory.nameOf(whole) + part;
      }
      const names = inside(layer, code).map(memory.nameOf);
      if (names.length < 3) return names.join(" + ");
      return `${names[0]} + ${names.length - 1} more`;
    },

    // Its place in the palette: that of the largest cluster in it.
    colourOf: (layer, code) => (layer < asked ? inside(layer, code)[0] ?? code : code),
  };

  function inside(layer, code) {
    return [...sizes.keys()]
      .filter((k) => sizes[k] > 0 && holder(k, asked, layer) === code)
      .sort((a, b) => sizes[b] - sizes[a]);
  }

  return layers;
}
