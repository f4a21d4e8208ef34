// Pointer, wheel, touch and keys on the picture, turned into what they mean.

const CLICK_DISTANCE = 5; // CSS pixels a pointer may move and still click

function listenToGestures(overlay, explorer) {
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
      explorer.drawOutline(null);
      return;
    }
    start = [event.clientX, event.clientY];
    moved = false;
    if (explorer.lassoing() || event.shiftKey) outline = [place(event)];
  });

  overlay.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") explorer.hover(...place(event));
      return;
    }
    const now = place(event);
    const before = pointers.get(event.pointerId);
    const far = Math.hypot(event.clientX - start[0], event.clientY - start[1]);
    moved = moved || far > CLICK_DISTANCE;
    if (pointers.size === 2) pinch(event.pointerId, before, now);
    else if (outline) {
      outline.push(now);
      explorer.drawOutline(outline);
    } else if (moved) explorer.pan(now[0] - before[0], now[1] - before[1]);
    pointers.set(event.pointerId, now);
  });

  function pinch(id, before, now) {
    const [, still] = [...pointers].find(([other]) => other !== id);
    const apart = (a) => Math.hypot(a[0] - still[0], a[1] - still[1]);
    moved = true;
    explorer.zoom(apart(now) / Math.max(1, apart(before)), ...still);
  }

  overlay.addEventListener("pointerup", (event) => {
    if (!pointers.delete(event.pointerId) || pointers.size) return;
    if (outline && moved) explorer.selectInside(outline);
    else if (!moved) explorer.click(...place(event));
    outline = null;
    explorer.drawOutline(null);
  });
  overlay.addEventListener("pointercancel", (event) => {
    pointers.delete(event.pointerId);
    outline = null;
    explorer.drawOutline(null);
  });
  overlay.addEventListener("pointerleave", () => explorer.hover(null));

  // A wheel over the picture scrolls the page until the picture has been clicked.
  overlay.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== overlay && !event.ctrlKey) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      explorer.zoom(Math.exp(-event.deltaY * lines * 0.0015), ...place(event));
    },
    { passive: false },
  );

  overlay.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = 0.12 * Math.min(overlay.width, overlay.height);
    const middle = [overlay.width / 2, overlay.height / 2];
    const actions = {
      ArrowLeft: () => explorer.pan(step, 0),
      ArrowRight: () => explorer.pan(-step, 0),
      ArrowUp: () => explorer.pan(0, step),
      ArrowDown: () => explorer.pan(0, -step),
      "+": () => explorer.zoom(1.4, ...middle),
      "=": () => explorer.zoom(1.4, ...middle),
      "-": () => explorer.zoom(1 / 1.4, ...middle),
      0: () => explorer.fit(),
      Enter: () => explorer.openMiddle(),
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
