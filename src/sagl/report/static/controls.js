// What people do with pointer, keys and buttons; and the start of it all.

// Pointer, wheel, touch and keys on the picture, turned into what they mean.

const CLICK_DISTANCE = 5; // CSS pixels a pointer may move and still click

function listenToGestures(stage, explorer) {
  const overlay = stage.over;
  const pointers = new Map(); // id of each finger or button that is down: its place
  let start = null;
  let moved = false;
  let outline = null;

  const place = (event) => {
    const box = overlay.getBoundingClientRect();
    const ratio = overlay.width / box.width;
    return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
  };

  overlay.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    overlay.focus({ preventScroll: true });
    overlay.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size > 1) {
      outline = null;
      explorer.drawOutline(stage, null);
      return;
    }
    start = [event.clientX, event.clientY];
    moved = false;
    if (explorer.lassoing() || event.shiftKey) outline = [place(event)];
  });

  overlay.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") explorer.hover(stage, ...place(event));
      return;
    }
    const now = place(event);
    const before = pointers.get(event.pointerId);
    const far = Math.hypot(event.clientX - start[0], event.clientY - start[1]);
    moved = moved || far > CLICK_DISTANCE;
    if (pointers.size === 2) pinch(event.pointerId, before, now);
    else if (outline) {
      outline.push(now);
      explorer.drawOutline(stage, outline);
    } else if (moved) explorer.pan(stage, now[0] - before[0], now[1] - before[1]);
    pointers.set(event.pointerId, now);
  });

  function pinch(id, before, now) {
    const [, still] = [...pointers].find(([other]) => other !== id);
    const apart = (a) => Math.hypot(a[0] - still[0], a[1] - still[1]);
    moved = true;
    explorer.zoom(stage, apart(now) / Math.max(1, apart(before)), ...still);
  }

  overlay.addEventListener("pointerup", (event) => {
    if (!pointers.delete(event.pointerId) || pointers.size) return;
    if (outline && moved) explorer.selectInside(stage, outline);
    else if (!moved) explorer.click(stage, ...place(event));
    outline = null;
    explorer.drawOutline(stage, null);
  });
  overlay.addEventListener("pointercancel", (event) => {
    pointers.delete(event.pointerId);
    outline = null;
    explorer.drawOutline(stage, null);
  });
  overlay.addEventListener("pointerleave", () => explorer.hover(stage, null));

  // A wheel over the picture scrolls the page until the picture has been clicked.
  overlay.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== overlay && !event.ctrlKey) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      explorer.zoom(stage, Math.exp(-event.deltaY * lines * 0.0015), ...place(event));
    },
    { passive: false },
  );

  overlay.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = 0.12 * Math.min(overlay.width, overlay.height);
    const middle = [overlay.width / 2, overlay.height / 2];
    const actions = {
      ArrowLeft: () => explorer.pan(stage, step, 0),
      ArrowRight: () => explorer.pan(stage, -step, 0),
      ArrowUp: () => explorer.pan(stage, 0, step),
      ArrowDown: () => explorer.pan(stage, 0, -step),
      "+": () => explorer.zoom(stage, 1.4, ...middle),
      "=": () => explorer.zoom(stage, 1.4, ...middle),
      "-": () => explorer.zoom(stage, 1 / 1.4, ...middle),
      0: () => explorer.fit(),
      Enter: () => explorer.openMiddle(stage),
      Escape: () => explorer.clear(),
      Backspace: () => explorer.back(),
      m: () => explorer.toggleWrong(),
      l: () => explorer.toggleLasso(),
      "/": () => byId("search").focus(),
    };
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    const action = digit ? () => explorer.walkToNeighbour(digit - 1) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

// The start: read the samples, open the explorer, connect the buttons of the page.

async function start() {
  const status = byId("explorer-status");
  const element = byId("payload");
  if (!element) return;
  try {
    const data = await readPayload(element);
    byId("explorer-app").hidden = false;
    const explorer = createExplorer(data);
    connect(explorer);
    document.documentElement.dataset.explorer = "ready";
  } catch (error) {
    byId("explorer-app").hidden = true;
    status.textContent = `The explorer could not start: ${error.message}`;
    throw error;
  }
}

function connect(explorer) {
  const on = (id, action) => byId(id).addEventListener("click", action);
  on("zoom-in", () => explorer.zoomAll(1.4));
  on("zoom-out", () => explorer.zoomAll(1 / 1.4));
  on("zoom-fit", () => explorer.fit());
  on("lasso", () => explorer.toggleLasso());
  on("export-labels", () => explorer.exportLabels());
  on("export-names", () => explorer.exportNames());
  on("export-corrections", () => explorer.exportCorrections());
  byId("colour").addEventListener("change", (event) =>
    explorer.colourBy(Number(event.target.value)),
  );
  for (const stage of explorer.stages) listenToGestures(stage, explorer);
  connectMaps(explorer);
  createGalleries(explorer);
  listenToSearch(byId("search"), byId("found"), explorer);
  for (const button of document.querySelectorAll("button[data-sample]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      explorer.bring(Number(button.dataset.sample));
    });
  }
  for (const button of document.querySelectorAll("button[data-show-cluster]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      explorer.showCluster(Number(button.dataset.showCluster));
      byId("explorer").scrollIntoView();
      byId("cluster-name").focus({ preventScroll: true });
    });
  }
}

// Which maps are shown, where each view has one of its own.
function connectMaps(explorer) {
  const { maps } = explorer;
  if (maps.length < 2) return;
  const [main, beside] = [byId("map"), byId("map-beside")];
  const options = () => maps.map(({ name }, i) => make("option", { value: i }, name));
  main.append(...options());
  beside.append(make("option", { value: "" }, "none"), ...options());
  main.addEventListener("change", () => explorer.showMap(0, maps[main.value]));
  beside.addEventListener("change", () => explorer.showMap(1, maps[beside.value] ?? null));
  byId("maps").hidden = false;
}

start();
