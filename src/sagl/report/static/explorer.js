// The explorer: state, and what every part of the page may ask of it.

const MOST_ALIKE = 60;

function createExplorer(data) {
  const memory = createMemory(data);
  const layers = createLayers(data, memory);
  const choices = colourChoices(data, layers);
  const { ids, cluster, words, xy, extent } = data;
  const maps = [{ name: "All views", words, xy, extent }, ...data.maps];
  const everyRow = () => [...ids.keys()];
  const colourAt = (place) => data.palette[place % data.palette.length];

  const state = {
    choice: choices[0],
    sample: -1,
    trail: [],
    highlighted: null, // a code of the choice
    hovered: -1, // in a picture beside
    selection: null, // rows
    linking: -1, // the sample that others are compared with
    lasso: false,
    outline: null,
  };
  let waiting = false;
  let stale = false; // the points have to be drawn anew, too
  let colours = null;

  const explorer = {
    data,
    memory,
    layers,
    maps,
    stages: [],
    clusterColour: colourAt,
    layerColour: (layer, code) => colourAt(layers.colourOf(layer, code)),
    highlighted: () => state.highlighted,
    layer: () => state.choice.layer ?? -1,
    lassoing: () => state.lasso,
    linking: () => state.linking,

    neighbours(view, row) {
      const { rows, weights } = view;
      const found = [];
      for (let i = row * view.k; i < (row + 1) * view.k; i++) {
        if (rows[i] < 0) break; // fewer than k
        found.push({ row: rows[i], weight: weights[i] });
      }
      return found;
    },

    walkTo(row, fresh = false) {
      if (fresh) state.trail = [];
      else if (state.sample >= 0 && state.sample !== row) state.trail.push(state.sample);
      open(row);
    },

    // From a list further down the page.
    bring(row) {
      explorer.walkTo(row, true);
      byId("explorer").scrollIntoView();
    },

    walkToNeighbour(place) {
      if (state.sample < 0 || !data.views.length) return;
      const found = explorer.neighbours(data.views[0], state.sample);
      if (place < found.length) explorer.walkTo(found[place].row);
    },

    back() {
      if (state.trail.length) open(state.trail.pop());
    },

    clear() {
      Object.assign(state, { sample: -1, trail: [], highlighted: null, selection: null });
      panel.showOverview();
      recolour();
      refreshLegend();
    },

    highlight(code) {
      const again = state.highlighted === code;
      explorer.clear();
      if (again) return;
      state.highlighted = code;
      if (state.choice.layer !== undefined) panel.showGroup(state.choice.layer, code);
      recolour();
      refreshLegend();
    },

    showLayer(layer) {
      explorer.colourBy(choices.findIndex((choice) => choice.layer === layer));
    },

    showGroup(layer, code) {
      if (state.choice.layer !== layer) explorer.showLayer(layer);
      if (state.highlighted !== code) explorer.highlight(code);
      else panel.showGroup(layer, code);
    },

    showCluster(k) {
      explorer.showGroup(layers.asked, k);
    },

    // Whom the graphs of all views lead to, in one step or two.
    showLike(row) {
      const found = new Map();
      const add = (to, weight) => found.set(to, (found.get(to) ?? 0) + weight);
      for (const view of data.views) {
        for (const { row: near, weight } of explorer.neighbours(view, row)) {
          add(near, weight);
          for (const { row: next, weight: second } of explorer.neighbours(view, near)) {
            add(next, (weight * second) / 2);
          }
        }
      }
      found.delete(row);
      const ranked = [...found].sort((a, b) => b[1] - a[1]).slice(0, MOST_ALIKE);
      const rows = [row, ...ranked.map(([other]) => other)];
      explorer.select(rows, `Like ${ids[row]}, which is the first: by the graph, the most alike first.`);
    },

    rename(layer, code, name) {
      if (layer === layers.asked) memory.rename(code, name);
      else memory.renameInLayer(layers.key(layer, code), name);
      showNames();
      redraw();
    },

    label(row, name) {
      const clean = name.trim().replaceAll(/\s+/g, " ");
      const number = data.labels.findIndex((_, k) => memory.nameOf(k) === clean);
      const to = number < 0 ? clean : number;
      const before = memory.said.find(({ kind, rows }) => kind === "label" && rows[0] === row);
      if (clean) memory.say({ kind: "label", rows: [row], to });
      else if (before) memory.takeBack(before);
      afterMarks();
    },

    linkFrom(row) {
      state.linking = row;
      if (state.sample >= 0) panel.showSample(state.sample, state.trail.length);
    },

    link(row, kind) {
      memory.say({ kind, rows: [state.linking, row] });
      afterMarks();
      explorer.linkFrom(-1);
    },

    say(kind, clusters) {
      memory.say({ kind, clusters });
      panel.showGroup(layers.asked, clusters[0]);
      afterMarks();
    },

    sayOf(kind, rows) {
      memory.say({ kind, rows });
      afterMarks();
    },

    takeBack(saying) {
      memory.takeBack(saying);
      panel.refresh();
      afterMarks();
    },

    toggleWrong(row = state.sample) {
      if (row < 0) return;
      memory.mark([row], !memory.wrong.has(row));
      panel.showSample(row, state.trail.length);
      afterMarks();
    },

    markSelection() {
      memory.mark(state.selection, true);
      afterMarks();
    },

    select(rows, about = null) {
      if (!rows.length) return;
      Object.assign(state, { sample: -1, trail: [], highlighted: null, selection: rows });
      panel.showSelection(rows, about);
      recolour();
      refreshLegend();
    },

    selectInside(stage, outline) {
      explorer.select(stage.inside(outline));
    },

    click(stage, left, top) {
      const row = stage.under(left, top);
      if (row >= 0) explorer.walkTo(row, true);
      else explorer.clear();
    },

    openMiddle(stage) {
      const { width, height } = stage.over;
      const row = stage.under(width / 2, height / 2, width);
      if (row >= 0) explorer.walkTo(row, true);
    },

    hover(stage, left, top) {
      const row = left === null ? -1 : stage.under(left, top);
      const text = row < 0 ? "" : `${ids[row]}  ·  ${memory.nameOf(cluster[row])}`;
      stage.showTip(row, left, top, text);
      if (shownStages().length < 2 || row === state.hovered) return;
      state.hovered = row; // the same sample in the picture beside
      redrawOver();
    },

    showMap(place, map) {
      explorer.stages[place].show(map);
      byId("stages").classList.toggle("two", shownStages().length > 1);
      byId("map-words").textContent = explorer.stages[0].map.words;
      state.hovered = -1;
      resize();
    },

    pan(stage, right, down) {
      stage.camera.pan(right, down);
      redraw();
    },
    zoom(stage, factor, left = stage.over.width / 2, top = stage.over.height / 2) {
      stage.camera.zoomAt(factor, left, top);
      redraw();
    },
    zoomAll(factor) {
      shownStages().forEach((stage) => explorer.zoom(stage, factor));
    },
    fit() {
      shownStages().forEach((stage) => stage.camera.fit());
      redraw();
    },

    toggleLasso() {
      state.lasso = !state.lasso;
      byId("lasso").setAttribute("aria-pressed", String(state.lasso));
      for (const { over } of explorer.stages) over.classList.toggle("lasso", state.lasso);
    },
    drawOutline(stage, places) {
      state.outline = places && { stage, places };
      redrawOver();
    },

    colourBy(place) {
      state.choice = choices[place];
      state.highlighted = null;
      byId("colour").value = String(place);
      panel.refresh();
      recolour();
      refreshLegend();
    },

    exportLabels() {
      download("labels.csv", "text/csv", labelsCsv(data, memory, everyRow()));
    },
    exportNames() {
      download("names.json", "application/json", namesJson(data, memory));
    },
    exportCorrections() {
      download("corrections.json", "application/json", correctionsJson(data, memory));
    },
    exportSelection(form) {
      const rows = state.selection ?? [];
      if (form === "csv") {
        download("selection.csv", "text/csv", labelsCsv(data, memory, rows));
      } else {
        const text = selectionJson(data, memory, rows);
        download("selection.json", "application/json", text);
      }
    },
  };

  const shownStages = () => explorer.stages.filter((stage) => stage.map !== null);

  function open(row) {
    state.sample = row;
    for (const stage of shownStages()) stage.lookAt(row);
    panel.showSample(row, state.trail.length);
    redraw();
  }

  function recolour() {
    let bright = null;
    if (state.selection) {
      const chosen = new Set(state.selection);
      bright = (row) => chosen.has(row);
    } else if (state.highlighted !== null) {
      bright = (row) => state.choice.codes[row] === state.highlighted;
    }
    colours = coloursOf(state.choice, ids.length, bright);
    redraw();
  }

  function refreshLegend() {
    const legend = byId("legend");
    const focused = legend.contains(document.activeElement);
    const code = document.activeElement.dataset.code;
    showLegend(legend, state.choice, explorer);
    if (focused) legend.querySelector(`[data-code="${code}"]`)?.focus();
  }

  function showNames() {
    for (const element of document.querySelectorAll("[data-cluster-name]")) {
      element.textContent = memory.nameOf(Number(element.dataset.clusterName));
    }
    for (const element of document.querySelectorAll("[data-layer-name]")) {
      const [layer, code] = element.dataset.layerName.split(":").map(Number);
      element.textContent = layers.nameOf(layer, code);
    }
    showNotice();
  }

  function afterMarks() {
    showNotice();
    redraw();
  }

  function showNotice() {
    const marks = memory.wrong.size;
    const parts = [`${counted(ids.length, "sample", "samples")}`];
    if (marks) parts.push(`${marks.toLocaleString("en")} marked as wrong`);
    if (memory.said.length) parts.push(counted(memory.said.length, "correction", "corrections"));
    if (!memory.persistent) {
      parts.push("this browser keeps nothing for this page: export before you leave");
    }
    byId("explorer-status").textContent = parts.join("; ");
  }

  function redraw() {
    stale = true;
    redrawOver();
  }

  function redrawOver() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      for (const stage of shownStages()) {
        if (stale) stage.drawPoints(colours);
        stage.drawOver(state);
      }
      stale = false;
    });
  }

  function resize() {
    for (const stage of shownStages()) stage.resize();
    redraw();
  }

  const panel = createPanel(byId("panel"), explorer);
  choices.forEach(({ name: title }, place) =>
    byId("colour").append(make("option", { value: place }, title)),
  );
  explorer.stages = [...document.querySelectorAll(".stage")].map((element) =>
    createStage(element, explorer),
  );
  explorer.showMap(0, maps[0]);
  new ResizeObserver(resize).observe(byId("stages"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  explorer.clear();
  showNames();
  return explorer;
}
