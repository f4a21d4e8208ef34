// The layers as a tree beside the map: choose one, or a branch of it.

const MOST_LEAVES = 150; // of the tree; more are a list that nobody reads

function layerTree(explorer) {
  const { layers } = explorer;
  if (layers.count < 2) return [];
  const chosen = explorer.layer();
  const deepest = Math.max(layers.asked, chosen);
  const last = layers.sizes.findLastIndex((n, i) => i <= deepest && n <= MOST_LEAVES);
  const roots = [...layers.counts(0).keys()].filter((code) => layers.counts(0)[code]);
  return [
    make("h3", { tabindex: -1 }, "Layers"),
    make(
      "p",
      { class: "quiet" },
      "The same samples from coarse to fine; each layer with the share of them that "
        + "keeps its cluster when the search starts elsewhere.",
    ),
    make(
      "div",
      { class: "layers", role: "group", "aria-label": "Layers" },
      ...layers.sizes.slice(0, layers.count).map((n, i) => layerButton(explorer, i, n)),
    ),
    make(
      "ul",
      { class: "tree" },
      ...roots.map((code) => branch(explorer, 0, code, Math.max(0, last))),
    ),
  ];
}

function layerButton(explorer, layer, n) {
  const { asked, stability } = explorer.layers;
  const share = stability[layer];
  return make(
    "button",
    {
      type: "button",
      class: "layer",
      id: `layer-${layer}`,
      "aria-pressed": String(explorer.layer() === layer),
      onclick: () => explorer.showLayer(layer),
    },
    make("span", {}, counted(n, "cluster", "clusters") + (layer === asked ? " (asked for)" : "")),
    shareBar(share),
    make("span", { class: "weight" }, `${Math.round(100 * share)} %`),
  );
}

function branch(explorer, layer, code, last) {
  const { layers } = explorer;
  let children = layer < last ? layers.children(layer, code) : [];
  while (children.length === 1) {
    // The same samples one layer further down.
    [layer, code] = [layer + 1, children[0]];
    children = layer < last ? layers.children(layer, code) : [];
  }
  return make(
    "li",
    {},
    make(
      "button",
      {
        type: "button",
        class: "node",
        "data-node": `${layer}:${code}`,
        onclick: () => explorer.showGroup(layer, code),
      },
      swatch(explorer.layerColour(layer, code)),
      layerName(explorer, layer, code),
      make("span", { class: "count" }, layers.counts(layer)[code].toLocaleString("en")),
    ),
    children.length
      ? make("ul", {}, ...children.map((k) => branch(explorer, layer + 1, k, last)))
      : null,
  );
}

// What a cluster of a layer is called; it follows when clusters are renamed.
function layerName(explorer, layer, code) {
  const name = explorer.layers.nameOf(layer, code);
  return make("bdi", { "data-layer-name": `${layer}:${code}` }, name);
}
