// The explorer: state, and what every part of the page may ask of it.

function createExplorer(data) {
  const memory = createMemory(data);
  const canvas = byId("points");
  const over = byId("overlay");
  const { xy, ids, cluster } = data;
  const everyRow = () => [...ids.keys()];

  const camera = createCamera(canvas, data.extent);
  const context = canvas.getContext("2d");
  const choices = colourChoices(data, memory);
  const state = {
    choice: choices[0],
    sample: -1,
    trail: [],
    highlighted: null, // a code of the choice
    selection: null, // rows
    lasso: false,
    outline: null,
  };
  let waiting = false;
  let colours = null;

  const explorer = {
    data,
    memory,
    camera,
    clusterColour: (k) => data.palette[k % data.palette.length],
    highlighted: () => state.highlighted,
    lassoing: () => state.lasso,

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
      panel.showHelp();
      recolour();
      refreshLegend();
    },

    highlight(code) {
      const again = state.highlighted === code;
      explorer.clear();
      if (again) return;
      state.highlighted = code;
      if (state.choice === choices[0]) panel.showCluster(code);
      recolour();
      refreshLegend();
    },

    showCluster(k) {
      if (state.choice !== choices[0]) explorer.colourBy(0);
      if (state.highlighted !== k) explorer.highlight(k);
      else panel.showCluster(k);
    },

    rename(k, name) {
      memory.rename(k, name);
      showNames();
      redraw();
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

    selectInside(outline) {
      const world = outline.map(([left, top]) => camera.toWorld(left, top));
      select(pointsInside(xy, world));
    },

    click(left, top) {
      const row = under(left, top);
      if (row >= 0) explorer.walkTo(row, true);
      else explorer.clear();
    },

    openMiddle() {
      const row = under(over.width / 2, over.height / 2, over.width);
      if (row >= 0) explorer.walkTo(row, true);
    },

    hover(left, top) {
      const row = left === null ? -1 : under(left, top);
      const tip = byId("tip");
      tip.hidden = row < 0;
      over.classList.toggle("pointing", row >= 0);
      if (row < 0) return;
      const ratio = over.width / over.clientWidth;
      tip.textContent = `${ids[row]}  ·  ${memory.nameOf(cluster[row])}`;
      const most = Math.max(0, over.clientWidth - tip.offsetWidth - 4);
      tip.style.left = `${clamp(left / ratio + 12, 0, most)}px`;
      tip.style.top = `${top / ratio + 14}px`;
    },

    pan(right, down) {
      camera.pan(right, down);
      redraw();
    },
    zoom(factor, left = canvas.width / 2, top = canvas.height / 2) {
      camera.zoomAt(factor, left, top);
      redraw();
    },
    fit() {
      camera.fit();
      redraw();
    },

    toggleLasso() {
      state.lasso = !state.lasso;
      byId("lasso").setAttribute("aria-pressed", String(state.lasso));
      over.classList.toggle("lasso", state.lasso);
    },
    drawOutline(outline) {
      state.outline = outline;
      redraw();
    },

    colourBy(place) {
      state.choice = choices[place];
      state.highlighted = null;
      byId("colour").value = String(place);
      recolour();
      refreshLegend();
    },

    exportLabels() {
      download("labels.csv", "text/csv", labelsCsv(data, memory, everyRow()));
    },
    exportNames() {
      download("names.json", "application/json", namesJson(data, memory));
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

  function open(row) {
    state.sample = row;
    camera.show(xy[2 * row], xy[2 * row + 1]);
    panel.showSample(row, state.trail.length);
    redraw();
  }

  function select(rows) {
    if (!rows.length) return;
    Object.assign(state, { sample: -1, trail: [], highlighted: null, selection: rows });
    panel.showSelection(rows);
    recolour();
    refreshLegend();
  }

  function under(left, top, radius = 12 * (window.devicePixelRatio || 1)) {
    return nearestPoint(xy, ...camera.toWorld(left, top), radius / camera.scale);
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
    if (!memory.persistent) {
      parts.push("this browser keeps nothing for this page: export before you leave");
    }
    byId("explorer-status").textContent = parts.join("; ");
  }

  function pointSize() {
    const sizes = [[500, 9], [3000, 7], [20_000, 5], [60_000, 3.5], [Infinity, 2.5]];
    const [, size] = sizes.find(([most]) => ids.length <= most);
    const room = clamp(over.clientWidth / 800, 0.6, 1); // smaller on a phone
    const grown = size * room * Math.max(1, camera.zoom) ** 0.35;
    return Math.min(16, grown) * (window.devicePixelRatio || 1);
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const style = getComputedStyle(canvas);
      const colour = (name) => style.getPropertyValue(name).trim();
      drawPoints(context, camera, xy, colours, pointSize(), colour("--card"));
      const named = state.choice === choices[0];
      overlay.draw({ ...state, named }, colour("--ink"), colour("--card"));
    });
  }

  function resize() {
    const ratio = window.devicePixelRatio || 1;
    for (const layer of [canvas, over]) {
      layer.width = Math.round(over.clientWidth * ratio);
      layer.height = Math.round(over.clientHeight * ratio);
    }
    camera.resize();
    redraw();
  }

  const panel = createPanel(byId("panel"), explorer);
  const overlay = createOverlay(over, explorer);
  choices.forEach(({ name }, place) =>
    byId("colour").append(make("option", { value: place }, name)),
  );
  camera.fit();
  resize();
  new ResizeObserver(resize).observe(over);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  explorer.clear();
  showNames();
  return explorer;
}
