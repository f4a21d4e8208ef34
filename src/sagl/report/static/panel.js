// The panel beside the picture: one sample and its neighbours, a cluster, a selection.

function createPanel(element, explorer) {
  const { data, memory } = explorer;
  const correcting = createCorrecting(explorer);
  let overview = false; // whether nothing is chosen
  const picture = (row) =>
    data.thumbnails[row] === undefined
      ? null
      : make("img", {
          src: data.thumbnails[row],
          alt: data.ids[row],
          class: data.pixelated ? "pixelated" : null,
        });

  // Who works with the keyboard stays in the panel when its content changes.
  function show(...children) {
    const focused = element.contains(document.activeElement);
    const before = focused ? document.activeElement.id : "";
    overview = false;
    element.replaceChildren(...children.filter((child) => child !== null));
    if (!focused) return;
    byId(before)?.focus({ preventScroll: true });
    const heading = element.querySelector("h3");
    if (!element.contains(document.activeElement)) heading?.focus();
  }

  function clusterChip(k) {
    return make(
      "button",
      { type: "button", class: "chip", onclick: () => explorer.showCluster(k) },
      swatch(explorer.clusterColour(k)),
      make("bdi", {}, memory.nameOf(k)),
    );
  }

  function content(row) {
    const image = picture(row);
    if (image) return make("div", { class: "picture" }, image);
    if (data.texts) return make("p", { class: "text", dir: "auto" }, data.texts[row]);
    return null;
  }

  function facts(row) {
    const list = make("dl", { class: "facts" });
    const add = (name, value) =>
      list.append(make("dt", {}, make("bdi", {}, name)), make("dd", {}, value));
    add("Cluster", clusterChip(data.cluster[row]));
    add("Confidence", data.confidence[row].toFixed(3));
    if (data.facts) {
      add("Unlike others", data.facts.outlier[row].toFixed(3));
      add("Views disagree", data.facts.disagreement[row].toFixed(3));
    }
    for (const column of data.columns) {
      const value = column.values[row];
      if (column.kind === "category") {
        add(column.name, make("bdi", {}, column.categories[value]));
      } else if (column.kind === "text") add(column.name, make("bdi", {}, value));
      else add(column.name, value === null ? "missing" : shortNumber(value));
    }
    return list;
  }

  function neighbourList(view, row, first) {
    const found = explorer.neighbours(view, row);
    const own = view.own[row];
    const list = make("ol", { class: "neighbours" });
    found.forEach(({ row: other, weight }, place) => {
      const small = picture(other);
      const caption = data.texts && !small ? data.texts[other] : data.ids[other];
      const key = first && place < 9 ? String(place + 1) : null;
      list.append(
        make(
          "li",
          {},
          make(
            "button",
            {
              type: "button",
              class: "neighbour",
              "data-row": other,
              "aria-keyshortcuts": key,
              onclick: () => explorer.walkTo(other),
            },
            swatch(explorer.clusterColour(data.cluster[other])),
            small,
            make("bdi", { class: "caption" }, caption),
            shareBar(weight),
            make("span", { class: "weight" }, weight.toFixed(3)),
          ),
        ),
      );
    });
    const note =
      found.length === 0
        ? "No neighbour but itself."
        : own > 0
          ? `To itself ${own.toFixed(3)}.`
          : null;
    return make(
      "section",
      { class: "view", "data-view": view.name },
      make("h4", {}, make("bdi", {}, view.name)),
      list,
      note && make("p", { class: "quiet" }, note),
    );
  }

  function showSample(row, trail) {
    const wrong = memory.wrong.has(row);
    show(
      make(
        "div",
        { class: "panel-head" },
        make(
          "button",
          {
            type: "button",
            id: "back",
            disabled: trail === 0,
            onclick: () => explorer.back(),
          },
          "← Back",
        ),
        make(
          "button",
          {
            type: "button",
            id: "mark",
            "aria-pressed": String(wrong),
            onclick: () => explorer.toggleWrong(row),
          },
          wrong ? "Marked as wrong" : "Mark as wrong",
        ),
        closeButton(),
      ),
      make("h3", { id: "sample-id", tabindex: -1 }, make("bdi", {}, data.ids[row])),
      content(row) ?? "",
      facts(row),
      ...correcting.ofSample(row),
      data.views.length
        ? make(
            "div",
            { class: "actions" },
            make(
              "button",
              { type: "button", id: "like-this", onclick: () => explorer.showLike(row) },
              "More like this one",
            ),
          )
        : "",
      make("h4", { class: "group" }, data.views.length ? "Neighbours in each graph" : ""),
      ...data.views.map((view, i) => neighbourList(view, row, i === 0)),
    );
    element.scrollTop = 0;
  }

  function closeButton() {
    const attributes = { type: "button", class: "close", "aria-label": "Close" };
    return make("button", { ...attributes, onclick: () => explorer.clear() }, "×");
  }

  // A cluster of any layer; those of the layer that was asked for can be corrected.
  function showGroup(layer, code) {
    const { layers } = explorer;
    const named = layer === layers.asked;
    const size = layers.counts(layer)[code];
    const number = named ? `${data.labels[code]}, ` : "";
    show(
      make("div", { class: "panel-head" }, closeButton()),
      make(
        "h3",
        { tabindex: -1 },
        swatch(explorer.layerColour(layer, code)),
        layerName(explorer, layer, code),
      ),
      make("p", { class: "quiet" }, `${number}${counted(size, "sample", "samples")}`),
      nameField(layer, code),
      ...(named ? [examplesLink(code), ...correcting.ofCluster(code)] : []),
      ...family(layer, code),
    );
    element.scrollTop = 0;
  }

  function nameField(layer, code) {
    const { layers } = explorer;
    const asked = layer === layers.asked;
    const given = () =>
      (asked ? memory.names.get(code) : memory.layerNames.get(layers.key(layer, code))) ?? "";
    const field = make("input", {
      id: "cluster-name",
      type: "text",
      value: given(),
      placeholder: asked ? data.labels[code] : layers.derivedName(layer, code),
      maxlength: 200,
      dir: "auto",
      onchange: () => {
        explorer.rename(layer, code, field.value);
        field.value = given();
      },
    });
    return make("label", { class: "field" }, "Name", field);
  }

  function examplesLink(k) {
    const words = "Its typical and doubtful samples";
    return make("p", {}, make("a", { href: `#cluster-${k}` }, words));
  }

  // The cluster that this one is in, and those that are in it.
  function family(layer, code) {
    const { layers } = explorer;
    const parent = layers.parent(layer, code);
    const groups = [
      ["Part of", layer - 1, parent === null ? [] : [parent]],
      ["In it", layer + 1, layers.children(layer, code)],
    ];
    return groups
      .filter(([, , codes]) => codes.length)
      .flatMap(([title, at, codes]) => [
        make("h4", { class: "group" }, title),
        make("div", { class: "actions" }, ...codes.map((k) => groupChip(at, k))),
      ]);
  }

  function groupChip(layer, code) {
    return make(
      "button",
      { type: "button", class: "chip", onclick: () => explorer.showGroup(layer, code) },
      swatch(explorer.layerColour(layer, code)),
      layerName(explorer, layer, code),
    );
  }

  function showSelection(rows, words = null) {
    const perCluster = new Map();
    for (const row of rows) {
      const k = data.cluster[row];
      perCluster.set(k, (perCluster.get(k) ?? 0) + 1);
    }
    const sorted = [...perCluster].sort((a, b) => b[1] - a[1]);
    const list = make("ul", { class: "counts" });
    for (const [k, count] of sorted.slice(0, 30)) {
      list.append(make("li", {}, clusterChip(k), ` ${count.toLocaleString("en")}`));
    }
    const action = (id, text, onclick) =>
      make("button", { type: "button", id, onclick }, text);
    show(
      make("div", { class: "panel-head" }, closeButton()),
      make("h3", { id: "selection-size", tabindex: -1 }, counted(rows.length, "sample", "samples")),
      words && make("p", { class: "quiet", dir: "auto" }, words),
      make(
        "div",
        { class: "actions" },
        action("selection-csv", "Save as CSV", () => explorer.exportSelection("csv")),
        action("selection-json", "Save as JSON", () => explorer.exportSelection("json")),
        action("selection-wrong", "Mark as wrong", () => explorer.markSelection()),
        ...correcting.ofSelection(rows),
        action("selection-clear", "Clear", () => explorer.clear()),
      ),
      list,
      sampleList(explorer, rows.slice(0, 60), (row) => data.confidence[row].toFixed(2)),
    );
    element.scrollTop = 0;
  }

  // What is there before anything is chosen: a hint, and the layers.
  function showOverview() {
    show(
      make("p", { class: "quiet hint" }, "Choose a point to see the sample and who "
        + "resembles it, and walk on from neighbour to neighbour. Choose a cluster in "
        + "the legend to name it."),
      ...correcting.list(),
      ...layerTree(explorer),
    );
    overview = true;
  }

  return {
    showSample,
    showGroup,
    showSelection,
    showOverview,
    refresh() {
      if (overview) showOverview();
    },
  };
}

function shortNumber(value) {
  return String(Number(value.toPrecision(5)));
}
