// Colours of points: by category, with colours that colour-blind people can tell
// apart, or along a scale that grows in lightness.

const MISSING = "#8c8c8c";

function bytesOf(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// By what points can be coloured. Each choice has a palette and says which of its
// colours a row has, none where a number is missing. Layers of clusters come first.
function colourChoices(data, layers) {
  const { palette, scale, facts } = data;
  const byCategory = (name, codes, count, label, placeOf = (code) => code, more = {}) => {
    const places = Array.from({ length: count }, (_, code) => {
      const place = placeOf(code);
      return place === null ? -1 : place % palette.length;
    });
    return {
      ...{ name, codes, count, label, palette, kind: "category", ...more },
      colour: (code) => palette[places[code]] ?? MISSING,
      place: (row) => places[codes[row]],
    };
  };
  const byLayer = (layer) =>
    byCategory(
      layer === layers.asked ? "Cluster" : `Layer of ${layers.sizes[layer]}`,
      layers.codes(layer),
      layers.sizes[layer],
      (code) => layers.nameOf(layer, code),
      (code) => layers.colourOf(layer, code),
      { layer },
    );
  const byNumber = (name, values, low, high) => ({
    ...{ name, low, high, palette: scale, kind: "number" },
    place: (row) =>
      values[row] === null
        ? -1
        : Math.round(((values[row] - low) / (high - low || 1)) * (scale.length - 1)),
  });
  const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
  const choices = [
    byLayer(layers.asked),
    ...[...Array(layers.count).keys()].filter((i) => i !== layers.asked).map(byLayer),
    byNumber("Confidence", data.confidence, 0, 1),
  ];
  if (facts) {
    const { outlier, disagreement } = facts;
    choices.push(byNumber("Unlike all others", outlier, 0, largest(outlier)));
    choices.push(byNumber("Views disagree", disagreement, 0, largest(disagreement)));
  }
  for (const { name, kind, values, categories, low, high, colours } of data.columns) {
    const label = (k) => categories[k];
    const placeOf = (k) => (colours ? colours[k] : k);
    if (kind === "category") {
      choices.push(byCategory(name, values, categories.length, label, placeOf));
    } else if (kind === "number") choices.push(byNumber(name, values, low, high));
  }
  return choices;
}

// Bytes r, g, b, a per row; rows outside of `bright` (a predicate or null) fade.
function coloursOf(choice, n, bright) {
  const colours = new Uint8Array(4 * n);
  const palette = choice.palette.map(bytesOf);
  const missing = bytesOf(MISSING);
  for (let row = 0; row < n; row++) {
    colours.set(palette[choice.place(row)] ?? missing, 4 * row);
    colours[4 * row + 3] = bright === null || bright(row) ? 225 : 26;
  }
  return colours;
}

// The legend: what the colours mean, and a way to look at one group alone.

const MOST_ENTRIES = 300;

function showLegend(element, choice, explorer) {
  element.replaceChildren(
    ...(choice.kind === "category"
      ? categoryLegend(choice, explorer)
      : [numberLegend(choice)]),
  );
}

function categoryLegend(choice, explorer) {
  const counts = new Uint32Array(choice.count);
  for (const code of choice.codes) counts[code]++;
  const order = [...counts.keys()];
  if (order.length > MOST_ENTRIES) {
    order.sort((a, b) => counts[b] - counts[a]);
    order.length = MOST_ENTRIES;
  }
  return order.map((code) =>
    make(
      "button",
      {
        type: "button",
        class: "entry",
        "data-code": code,
        "aria-pressed": String(explorer.highlighted() === code),
        onclick: () => explorer.highlight(code),
      },
      swatch(choice.colour(code)),
      choice.layer === undefined
        ? make("bdi", {}, choice.label(code))
        : layerName(explorer, choice.layer, code),
      make("span", { class: "count" }, counts[code].toLocaleString("en")),
    ),
  );
}

function numberLegend({ palette, low, high }) {
  const bar = make("span", { class: "scale", role: "img" });
  bar.ariaLabel = "colour scale from dark (low) to bright (high)";
  bar.style.background = `linear-gradient(to right, ${palette})`;
  const [least, most] = [low, high].map((end) => make("span", {}, shortNumber(end)));
  return make("div", { class: "scale-legend" }, least, bar, most);
}
