// What lies over the points: names of clusters, the chosen sample and its edges, marks.

const MOST_MARKS = 5000;
const MOST_RINGS = 300; // of a selection; more are seen by their colour

function createOverlay(canvas, explorer, stage) {
  const context = canvas.getContext("2d");
  const { data, memory } = explorer;
  const known = new Map(); // where the names of a choice stand

  const onScreen = (row) => {
    const { xy } = stage.map;
    return stage.camera.toScreen(xy[2 * row], xy[2 * row + 1]);
  };

  function ring(row, radius, width, colour) {
    const [x, y] = onScreen(row);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }

  function drawNames(choice, ink, paper, ratio) {
    const size = 12 * ratio;
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken = [];
    if (!known.has(choice)) known.set(choice, centresOf(choice));
    for (const { k, row, height } of known.get(choice)) {
      const [middle, centre] = onScreen(row);
      const inside = middle >= 0 && centre >= 0 && middle <= canvas.width;
      if (!inside || centre > canvas.height) continue;
      // A name would hide a small cluster: there it stands above.
      const tall = height * stage.camera.scale;
      const above = centre - tall / 2 - 1.2 * size;
      const top = tall < 4 * size && above > size ? above : centre;
      const text = shortened(choice.label(k), 28);
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
    forget() {
      known.clear(); // it is another map
    },

    draw(state, ink, paper) {
      const ratio = window.devicePixelRatio || 1;
      context.clearRect(0, 0, canvas.width, canvas.height);
      drawMarks(ink, ratio);
      if (state.selection?.length <= MOST_RINGS) {
        for (const row of state.selection) ring(row, 4.5 * ratio, 1.25 * ratio, ink);
      }
      if (state.sample >= 0) drawSample(state.sample, ink, ratio);
      if (state.choice.layer !== undefined) drawNames(state.choice, ink, paper, ratio);
      if (state.hovered >= 0) ring(state.hovered, 7 * ratio, 2 * ratio, ink);
      if (state.outline?.stage === stage) drawOutline(state.outline.places, ink, ratio);
    },
  };

  // The sample in the middle of each cluster, and how high the cluster is.
  function centresOf({ codes, count }) {
    const { xy } = stage.map;
    const rows = Array.from({ length: count }, () => []);
    const step = Math.max(1, Math.floor(codes.length / 50_000));
    for (let row = 0; row < codes.length; row += step) rows[codes[row]].push(row);
    const sorted = (members, axis) =>
      members.map((row) => xy[2 * row + axis]).sort((a, b) => a - b);
    const at = (values, share) => values[Math.floor(share * (values.length - 1))];
    return rows
      .map((members, k) => ({ k, members }))
      .filter(({ members }) => members.length)
      .sort((a, b) => b.members.length - a.members.length)
      .map(({ k, members }) => {
        const [across, up] = [sorted(members, 0), sorted(members, 1)];
        const [x, y] = [at(across, 0.5), at(up, 0.5)];
        const away = (row) => (xy[2 * row] - x) ** 2 + (xy[2 * row + 1] - y) ** 2;
        const middle = members.reduce((best, row) => (away(row) < away(best) ? row : best));
        return { k, row: middle, height: at(up, 0.95) - at(up, 0.05) };
      });
  }
}

function shortened(text, most) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}
