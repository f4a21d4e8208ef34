// Where one looks: the world is the unit square, y upwards, as the points are stored.

function createCamera(canvas, extent) {
  const camera = {
    x: 0.5,
    y: 0.5,
    scale: 1, // device pixels per unit of the world
    zoom: 1, // relative to the whole picture

    fit() {
      camera.x = extent[0] / 2;
      camera.y = extent[1] / 2;
      camera.zoom = 1;
      camera.resize();
    },

    resize() {
      const { width, height } = canvas;
      const whole = Math.min(width / extent[0], height / extent[1]);
      camera.scale = 0.92 * camera.zoom * whole;
    },

    toScreen(x, y) {
      return [
        (x - camera.x) * camera.scale + canvas.width / 2,
        (camera.y - y) * camera.scale + canvas.height / 2,
      ];
    },

    toWorld(left, top) {
      return [
        (left - canvas.width / 2) / camera.scale + camera.x,
        (canvas.height / 2 - top) / camera.scale + camera.y,
      ];
    },

    pan(right, down) {
      camera.x = clamp(camera.x - right / camera.scale, 0, extent[0]);
      camera.y = clamp(camera.y + down / camera.scale, 0, extent[1]);
    },

    // The point of the world under (left, top) stays there.
    zoomAt(factor, left, top) {
      const [x, y] = camera.toWorld(left, top);
      camera.zoom = clamp(camera.zoom * factor, 0.5, 400);
      camera.resize();
      const [newX, newY] = camera.toWorld(left, top);
      camera.x = clamp(camera.x + x - newX, 0, extent[0]);
      camera.y = clamp(camera.y + y - newY, 0, extent[1]);
    },

    show(x, y) {
      const [left, top] = camera.toScreen(x, y);
      const margin = 0.08 * Math.min(canvas.width, canvas.height);
      const inside =
        left > margin &&
        top > margin &&
        left < canvas.width - margin &&
        top < canvas.height - margin;
      if (!inside) [camera.x, camera.y] = [x, y];
    },
  };
  return camera;
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

// Points sorted into the cells of a grid, so that a click looks at a few of them only.
function createGrid(positions) {
  const n = positions.length / 2;
  const side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(n / 2))));
  const cellOf = (x, y) => {
    const column = clamp(Math.floor(x * side), 0, side - 1);
    const row = clamp(Math.floor(y * side), 0, side - 1);
    return row * side + column;
  };
  const starts = new Uint32Array(side * side + 1);
  const cells = new Uint32Array(n);
  for (let i = 0; i < n; i++) {
    cells[i] = cellOf(positions[2 * i] / 65535, positions[2 * i + 1] / 65535);
    starts[cells[i] + 1]++;
  }
  for (let c = 0; c < side * side; c++) starts[c + 1] += starts[c];
  const next = starts.slice();
  const rows = new Uint32Array(n);
  for (let i = 0; i < n; i++) rows[next[cells[i]]++] = i;

  // Calls visit(row, x, y) for all points of the cells that a rectangle touches.
  function visit(left, bottom, right, top, callback) {
    const cell = (value) => clamp(Math.floor(value * side), 0, side - 1);
    for (let row = cell(bottom); row <= cell(top); row++) {
      const from = starts[row * side + cell(left)];
      const to = starts[row * side + cell(right) + 1];
      for (let i = from; i < to; i++) {
        const point = rows[i];
        callback(point, positions[2 * point] / 65535, positions[2 * point + 1] / 65535);
      }
    }
  }

  return {
    nearest(x, y, radius) {
      let best = -1;
      let least = radius * radius;
      visit(x - radius, y - radius, x + radius, y + radius, (point, px, py) => {
        const distance = (px - x) ** 2 + (py - y) ** 2;
        if (distance <= least) [best, least] = [point, distance];
      });
      return best;
    },

    inside(polygon) {
      const xs = polygon.map(([x]) => x);
      const ys = polygon.map(([, y]) => y);
      const found = [];
      const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
      visit(...box, (point, x, y) => {
        if (contains(polygon, x, y)) found.push(point);
      });
      return found.sort((a, b) => a - b);
    },
  };
}

// Whether a ray from (x, y) crosses the outline an odd number of times.
function contains(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [ax, ay] = polygon[i];
    const [bx, by] = polygon[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) {
      inside = !inside;
    }
  }
  return inside;
}
