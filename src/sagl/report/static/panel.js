// The panel beside the picture: one sample and its neighbours, a cluster, a selection.

function createPanel(element, explorer) {
  const { data, memory } = explorer;
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
    element.replaceChildren(...children);
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
      make("h4", { class: "group" }, data.views.length ? "Neighbours in each graph" : ""),
      ...data.views.map((view, i) => neighbourList(view, row, i === 0)),
    );
    element.scrollTop = 0;
  }

  function closeButton() {
    const attributes = { type: "button", class: "close", "aria-label": "Close" };
    return make("button", { ...attributes, onclick: () => explorer.clear() }, "×");
  }

  function showCluster(k) {
    const size = data.sizes[k];
    const field = make("input", {
      id: "cluster-name",
      type: "text",
      value: memory.names.get(k) ?? "",
      placeholder: data.labels[k],
      maxlength: 200,
      dir: "auto",
      onchange: (event) => explorer.rename(k, event.target.value),
    });
    show(
      make(
        "div",
        { class: "panel-head" },
        make("span", { class: "spring" }),
        closeButton(),
      ),
      make(
        "h3",
        { tabindex: -1 },
        swatch(explorer.clusterColour(k)),
        make("bdi", { "data-cluster-name": k }, memory.nameOf(k)),
      ),
      make("p", { class: "quiet" }, `${data.labels[k]}, ${counted(size, "sample", "samples")}`),
      make("label", { class: "field" }, "Name", field),
      make(
        "p",
        {},
        make("a", { href: `#cluster-${k}` }, "Its typical and doubtful samples"),
      ),
    );
  }

  function showSelection(rows) {
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
      make("h3", { id: "selection-size", tabindex: -1 }, counted(rows.length, "sample", "samples")),
      make(
        "div",
        { class: "actions" },
        action("selection-csv", "Save as CSV", () => explorer.exportSelection("csv")),
        action("selection-json", "Save as JSON", () => explorer.exportSelection("json")),
        action("selection-wrong", "Mark as wrong", () => explorer.markSelection()),
        action("selection-clear", "Clear", () => explorer.clear()),
      ),
      list,
      previews(rows.slice(0, 60)),
    );
  }

  function previews(rows) {
    const strip = make("div", { class: "previews" });
    for (const row of rows) {
      const image = picture(row);
      if (!image) continue;
      strip.append(
        make(
          "button",
          {
            type: "button",
            "aria-label": data.ids[row],
            onclick: () => explorer.walkTo(row),
          },
          image,
        ),
      );
    }
    return strip;
  }

  function showHelp() {
    show(
      make("p", { class: "quiet hint" }, "Choose a point to see the sample and who "
        + "resembles it, and walk on from neighbour to neighbour. Choose a cluster in "
        + "the legend to name it."),
    );
  }

  return { showSample, showCluster, showSelection, showHelp };
}

function shortNumber(value) {
  return String(Number(value.toPrecision(5)));
}
