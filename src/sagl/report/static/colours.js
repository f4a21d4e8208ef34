// Colours of points: by category, with colours that colour-blind people can tell
// apart, or along a scale that grows in lightness (cividis).

const CIVIDIS = [
  [0, 32, 77],
  [33, 54, 110],
  [76, 85, 108],
  [108, 110, 114],
  [127, 124, 117],
  [153, 145, 111],
  [187, 175, 98],
  [222, 206, 74],
  [255, 234, 70],
];

function bytesOf(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function hexOf([red, green, blue]) {
  const digits = ((red << 16) | (green << 8) | blue).toString(16);
  return `#${digits.padStart(6, "0")}`;
}

function scaleColour(share) {
  const place = clamp(share, 0, 1) * (CIVIDIS.length - 1);
  const low = Math.min(CIVIDIS.length - 2, Math.floor(place));
  return CIVIDIS[low].map((from, c) =>
    Math.round(from + (CIVIDIS[low + 1][c] - from) * (place - low)),
  );
}

// By what points can be coloured: each with a colour and a legend per row.
function colourChoices(data, memory) {
  const palette = data.palette.map(bytesOf);
  const { cluster, confidence } = data;
  const choices = [
    {
      name: "Cluster",
      kind: "category",
      codes: cluster,
      count: data.sizes.length,
      label: (k) => memory.nameOf(k),
      colour: (k) => palette[k % palette.length],
    },
    { name: "Confidence", kind: "number", values: confidence, low: 0, high: 1 },
  ];
  for (const column of data.columns) {
    const { values } = column;
    if (column.kind === "category") {
      choices.push({
        name: column.name,
        kind: "category",
        codes: values,
        count: column.categories.length,
        label: (k) => column.categories[k],
        colour: (k) => palette[k % palette.length],
      });
    } else if (column.kind === "number") {
      const { low, high } = column;
      choices.push({ name: column.name, kind: "number", values, low, high });
    }
  }
  return choices;
}

const MISSING = [140, 140, 140];

// Bytes r, g, b, a per row; rows outside of `bright` (a predicate or null) fade.
function coloursOf(choice, n, bright) {
  const colours = new Uint8Array(4 * n);
  const span = choice.high - choice.low || 1;
  for (let row = 0; row < n; row++) {
    let colour;
    if (choice.kind === "category") colour = choice.colour(choice.codes[row]);
    else if (choice.values[row] === null) colour = MISSING;
    else colour = scaleColour((choice.values[row] - choice.low) / span);
    colours.set(colour, 4 * row);
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
  const isCluster = choice.name === "Cluster";
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
      swatch(hexOf(choice.colour(code))),
      make("bdi", isCluster ? { "data-cluster-name": code } : {}, choice.label(code)),
      make("span", { class: "count" }, counts[code].toLocaleString("en")),
    ),
  );
}

function numberLegend(choice) {
  const bar = make("canvas", { width: 200, height: 1, class: "scale", role: "img" });
  bar.setAttribute("aria-label", "colour scale from dark (low) to bright (high)");
  const context = bar.getContext("2d");
  for (let x = 0; x < 200; x++) {
    context.fillStyle = hexOf(scaleColour(x / 199));
    context.fillRect(x, 0, 1, 1);
  }
  return make(
    "div",
    { class: "scale-legend" },
    make("span", {}, shortNumber(choice.low)),
    bar,
    make("span", {}, shortNumber(choice.high)),
  );
}
