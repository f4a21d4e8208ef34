// Drawing many points, pixel by pixel: quick enough for all that a page can hold, and
// the same on every machine, with a graphics card or without.

// `colours` are bytes r, g, b, a per point, `size` is a dot's diameter in device pixels,
// `paper` is written #rrggbb.
function drawPoints(context, camera, xy, colours, size, paper) {
  const { width, height } = context.canvas;
  if (!width || !height) return;
  const image = context.createImageData(width, height);
  const { data } = image;
  const [red, green, blue] = bytesOf(paper);
  new Uint32Array(data.buffer).fill((255 << 24) | (blue << 16) | (green << 8) | red);
  const dot = dotPixels(size);
  const [x0, y0] = camera.toScreen(0, 0);
  const drawDot = (row) => {
    const left = Math.round(x0 + xy[2 * row] * camera.scale);
    const top = Math.round(y0 - xy[2 * row + 1] * camera.scale);
    const own = 4 * row; // not destructured: this runs a million times a frame
    for (let i = 0; i < dot.length; i += 3) {
      const x = left + dot[i];
      const y = top + dot[i + 1];
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      const at = 4 * (y * width + x);
      const share = (dot[i + 2] * colours[own + 3]) / 255;
      for (let c = 0; c < 3; c++) data[at + c] += (colours[own + c] - data[at + c]) * share;
    }
  };
  for (const faded of [true, false]) {
    // Bright ones on top.
    for (let row = 0; 4 * row < colours.length; row++) {
      if (colours[4 * row + 3] < 128 === faded) drawDot(row);
    }
  }
  context.putImageData(image, 0, 0);
}

// The pixels of a dot: x and y from its middle, and how much of each it covers.
function dotPixels(size) {
  const dot = [];
  const reach = Math.ceil(size / 2);
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const cover = clamp(size / 2 - Math.hypot(x, y) + 0.25, 0, 1);
      if (cover > 0) dot.push(x, y, cover);
    }
  }
  return dot;
}
