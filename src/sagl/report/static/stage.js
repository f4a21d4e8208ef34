// One picture of all samples: a map, where one looks at it, points and what is over them.

function createStage(element, explorer) {
  const canvas = element.querySelector(".points");
  const over = element.querySelector(".over");
  const tip = element.querySelector(".tip");
  const name = element.querySelector(".stage-name");
  const context = canvas.getContext("2d");

  const stage = {
    over,
    map: null,
    camera: null,

    show(map) {
      stage.map = map;
      element.hidden = map === null;
      if (map === null) return;
      name.textContent = map.name;
      stage.camera = createCamera(canvas, map.extent);
      stage.camera.fit();
      overlay.forget();
      stage.resize();
    },

    resize() {
      const ratio = window.devicePixelRatio || 1;
      for (const layer of [canvas, over]) {
        layer.width = Math.round(over.clientWidth * ratio);
        layer.height = Math.round(over.clientHeight * ratio);
      }
      stage.camera?.resize();
    },

    // The sample at a place of the screen, or -1.
    under(left, top, radius = 12 * (window.devicePixelRatio || 1)) {
      const place = stage.camera.toWorld(left, top);
      return nearestPoint(stage.map.xy, ...place, radius / stage.camera.scale);
    },

    inside(outline) {
      const world = outline.map(([left, top]) => stage.camera.toWorld(left, top));
      return pointsInside(stage.map.xy, world);
    },

    lookAt(row) {
      stage.camera.show(stage.map.xy[2 * row], stage.map.xy[2 * row + 1]);
    },

    drawPoints(colours) {
      const { xy } = stage.map;
      drawPoints(context, stage.camera, xy, colours, pointSize(), colour("--card"));
    },

    drawOver(state) {
      overlay.draw(state, colour("--ink"), colour("--card"));
    },

    showTip(row, left, top, text) {
      tip.hidden = row < 0;
      over.classList.toggle("pointing", row >= 0);
      if (row < 0) return;
      const ratio = over.width / over.clientWidth;
      tip.textContent = text;
      const most = Math.max(0, over.clientWidth - tip.offsetWidth - 4);
      tip.style.left = `${clamp(left / ratio + 12, 0, most)}px`;
      tip.style.top = `${top / ratio + 14}px`;
    },
  };

  function colour(variable) {
    return getComputedStyle(canvas).getPropertyValue(variable).trim();
  }

  function pointSize() {
    const n = explorer.data.ids.length;
    const sizes = [[500, 9], [3000, 7], [20_000, 5], [60_000, 3.5], [Infinity, 2.5]];
    const [, size] = sizes.find(([most]) => n <= most);
    const room = clamp(over.clientWidth / 800, 0.6, 1); // smaller on a phone
    const grown = size * room * Math.max(1, stage.camera.zoom) ** 0.35;
    return Math.min(16, grown) * (window.devicePixelRatio || 1);
  }

  const overlay = createOverlay(over, explorer, stage);
  return stage;
}
