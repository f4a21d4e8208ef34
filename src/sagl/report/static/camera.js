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

// The point nearest to (x, y) within a radius, or -1.
function nearestPoint(xy, x, y, radius) {
  let best = -1;
  let least = radius * radius;
  for (let row = 0; 2 * row < xy.length; row++) {
    const distance = (xy[2 * row] - x) ** 2 + (xy[2 * row + 1] - y) ** 2;
    if (distance <= least) [best, least] = [row, distance];
  }
  return best;
}

function pointsInside(xy, polygon) {
  const found = [];
  for (let row = 0; 2 * row < xy.length; row++) {
    if (contains(polygon, xy[2 * row], xy[2 * row + 1])) found.push(row);
  }
  return found;
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
