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
