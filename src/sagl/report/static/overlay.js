// What lies over the points: names of clusters, the chosen sample and its edges, marks.

const MOST_MARKS = 5000;

function createOverlay(canvas, explorer) {
  const context = canvas.getContext("2d");
  const { data, memory, camera } = explorer;
  const { xy, cluster } = data;
  const centres = clusterCentres();

  const onScreen = (row) => camera.toScreen(xy[2 * row], xy[2 * row + 1]);

  function ring(row, radius, width, colour) {
    const [x, y] = onScreen(row);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }

  function drawNames(ink, paper, ratio) {
    const size = 12 * ratio;
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken = [];
    for (const { k, x, y } of centres) {
      const [middle, top] = camera.toScreen(x, y);
      if (middle < 0 || top < 0 || middle > canvas.width || top > canvas.height) continue;
      const text = shortened(memory.nameOf(k), 24);
      const half = context.measureText(text).width / 2 + 3 * ratio;
      const left = clamp(middle, half, canvas.width - half); // whole, also at the edge
      const box = [left - half, top - size, left + half, top + size];
      const hidden = taken.some(
        (other) =>
          box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1],
      );
      if (hidden) continue; // the larger cluster keeps its name
      taken.push(box);
      context.lineWidth = 4 * ratio;
      context.strokeStyle = paper;
      context.strokeText(text, left, top);
      context.fillStyle = ink;
      context.fillText(text, left, top);
    }
  }

  function drawMarks(ink, ratio) {
    if (memory.wrong.size > MOST_MARKS) return;
    const arm = 4 * ratio;
    context.lineWidth = 1.5 * ratio;
    context.strokeStyle = ink;
    context.beginPath();
    for (const row of memory.wrong) {
      const [x, y] = onScreen(row);
      context.moveTo(x - arm, y - arm);
      context.lineTo(x + arm, y + arm);
      context.moveTo(x - arm, y + arm);
      context.lineTo(x + arm, y - arm);
    }
    context.stroke();
  }

  function drawSample(row, ink, ratio) {
    const [x, y] = onScreen(row);
    for (const view of data.views) {
      for (const { row: other, weight } of explorer.neighbours(view, row)) {
        const [toX, toY] = onScreen(other);
        context.globalAlpha = 0.25 + 0.75 * Math.sqrt(weight);
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(toX, toY);
        context.lineWidth = (0.5 + 2.5 * weight) * ratio;
        context.strokeStyle = ink;
        context.stroke();
        ring(other, 4.5 * ratio, 1.25 * ratio, ink);
      }
    }
    context.globalAlpha = 1;
    ring(row, 9 * ratio, 2.5 * ratio, ink);
  }

  function drawOutline(outline, ink, ratio) {
    context.beginPath();
    outline.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
    context.globalAlpha = 0.1;
    context.fillStyle = ink;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1.5 * ratio;
    context.strokeStyle = ink;
    context.stroke();
  }

  return {
    draw(state, ink, paper) {
      const ratio = window.devicePixelRatio || 1;
      context.clearRect(0, 0, canvas.width, canvas.height);
      drawMarks(ink, ratio);
      if (state.sample >= 0) drawSample(state.sample, ink, ratio);
      if (state.named) drawNames(ink, paper, ratio);
      if (state.outline) drawOutline(state.outline, ink, ratio);
    },
  };

  // The middle of each cluster: a sample's place, so that it lies among its points.
  function clusterCentres() {
    const rows = data.sizes.map(() => []);
    const step = Math.max(1, Math.floor(cluster.length / 50_000));
    for (let row = 0; row < cluster.length; row += step) rows[cluster[row]].push(row);
    const middle = (members, axis) => {
      const values = members.map((row) => xy[2 * row + axis]).sort((a, b) => a - b);
      return values[values.length >> 1];
    };
    return rows
      .map((members, k) => ({ k, members }))
      .filter(({ members }) => members.length)
      .sort((a, b) => b.members.length - a.members.length)
      .map(({ k, members }) => ({ k, x: middle(members, 0), y: middle(members, 1) }));
  }
}

function shortened(text, most) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}
