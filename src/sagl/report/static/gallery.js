// Galleries of what stands out: unlike all others, seen differently, there twice.

const IN_GALLERY = 240; // samples of one; they are sorted among themselves
const A_SCREENFUL = 36;
const NONE = "There are none.";

const SAMPLE_ORDERS = {
  score: "what stands out most",
  confidence: "least confident",
  cluster: "cluster",
  id: "id",
};
const GROUP_ORDERS = {
  across: "most clusters in a group",
  size: "largest group",
  id: "id",
};

// Samples as a list: pictures, lines of text, or ids, each with a word about it.
function sampleList(explorer, rows, note, choose = (row) => explorer.walkTo(row, true)) {
  const { data } = explorer;
  const pictured = Object.keys(data.thumbnails).length > 0;
  const form = pictured ? "pictures" : data.texts ? "lines" : "lines short";
  const items = rows.map((row) => sampleItem(explorer, row, note(row), () => choose(row)));
  return make("ul", { class: form }, ...items);
}

function sampleItem(explorer, row, note, onclick) {
  const { data } = explorer;
  const image = data.thumbnails[row];
  const look = image
    ? make("img", { src: image, alt: data.ids[row], class: data.pixelated ? "pixelated" : null })
    : make("bdi", {}, shortened(data.texts?.[row] || data.ids[row], 160));
  return make(
    "li",
    {},
    make(
      "button",
      {
        type: "button",
        "data-row": row,
        title: `${data.ids[row]} · ${explorer.memory.nameOf(data.cluster[row])}`,
        onclick,
      },
      look,
      make(
        "span",
        { class: "confidence" },
        swatch(explorer.clusterColour(data.cluster[row])),
        ` ${note}`,
      ),
    ),
  );
}

// What there is to look at: each with a score per sample, with rows, or with groups.
function galleryKinds(data) {
  const { facts, confidence } = data;
  const kinds = [];
  const clusters = (rows) => new Set(rows.map((row) => data.cluster[row])).size;
  const asGroup = (rows) => ({ rows, clusters: clusters(rows), id: data.ids[rows[0]] });
  const add = (key, title, words, more) => kinds.push({ key, title, words, ...more });
  if (facts) {
    add(
      "outlier",
      "Unlike all others",
      "How far a sample is from those nearest to it, in all views together: from 0, "
        + "among its like, to 2.",
      { score: (row) => facts.outlier[row] },
    );
    if (facts.disagreement.some((value) => value > 0)) {
      add(
        "disagreement",
        "Views disagree",
        "How differently the views see a sample: 0 alike, 1 each its own way.",
        { score: (row) => facts.disagreement[row] },
      );
    }
    const groups = new Map();
    facts.duplicate.forEach((group, row) => {
      if (group < 0) return;
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(row);
    });
    add(
      "duplicate",
      "Near-duplicates",
      "Samples much nearer to each other, in all views together, than neighbours are.",
      { groups: [...groups.values()].filter((rows) => rows.length > 1).map(asGroup) },
    );
  }
  add(
    "doubtful",
    "Doubtful",
    "Samples that might as well be in another cluster. The number is the confidence.",
    { score: (row) => -confidence[row], shown: (row) => confidence[row] },
  );
  if (data.asking.length) {
    const places = new Map(data.asking.map((row, place) => [row, place]));
    add(
      "asking",
      "Worth asking about",
      "Samples that are like many doubtful ones: to say where each belongs says most. "
        + "The number is the confidence.",
      {
        rows: data.asking,
        score: (row) => -places.get(row),
        shown: (row) => confidence[row],
      },
    );
  }
  if (data.moved) {
    add(
      "moved",
      "Moved",
      "Samples that the run beside has in a cluster that is not the counterpart of "
        + "theirs. The number is the confidence.",
      { rows: data.moved, score: (row) => confidence[row] },
    );
  }
  return kinds;
}

// Ids with numbers in them: 9 before 10. (One collator: making one is slow.)
const inOrder = new Intl.Collator("en", { numeric: true }).compare;

function createGalleries(explorer) {
  const { data, memory } = explorer;
  const kinds = galleryKinds(data);
  const [sortField, clusterField] = [byId("gallery-sort"), byId("gallery-cluster")];
  const state = { kind: kinds[0], shown: A_SCREENFUL };
  const orders = new Map(); // rows of a kind, by score

  function ranked(kind) {
    if (!orders.has(kind)) {
      const rows = kind.rows ?? [...data.ids.keys()];
      const scores = rows.map(kind.score);
      const places = [...rows.keys()].sort((a, b) => scores[b] - scores[a] || a - b);
      orders.set(kind, places.map((place) => rows[place]));
    }
    return orders.get(kind);
  }

  const inCluster = (row) =>
    clusterField.value === "" || data.cluster[row] === Number(clusterField.value);

  function samples(kind) {
    const all = ranked(kind).filter(inCluster);
    const rows = all.slice(0, IN_GALLERY);
    const compare = {
      confidence: (a, b) => data.confidence[a] - data.confidence[b],
      cluster: (a, b) => data.cluster[a] - data.cluster[b],
      id: (a, b) => inOrder(data.ids[a], data.ids[b]),
    }[sortField.value];
    if (compare) rows.sort(compare); // equal ones stay by score
    return { rows, of: all.length };
  }

  function groups(kind) {
    const chosen = kind.groups.filter(({ rows }) => rows.some(inCluster));
    const compare = {
      across: (a, b) => b.clusters - a.clusters || b.rows.length - a.rows.length,
      size: (a, b) => b.rows.length - a.rows.length,
      id: (a, b) => inOrder(a.id, b.id),
    }[sortField.value];
    return chosen.sort(compare);
  }

  function show() {
    const { kind } = state;
    const value = kind.shown ?? kind.score;
    let shown, words;
    if (kind.groups) {
      const all = groups(kind);
      shown = all.slice(0, state.shown / 3).map(group);
      words = all.length ? counted(all.length, "group", "groups") : NONE;
      byId("gallery-more").hidden = shown.length >= all.length;
    } else {
      const { rows, of } = samples(kind);
      shown = [listed(rows.slice(0, state.shown), value)];
      words = of ? counted(of, "sample", "samples") : NONE;
      if (of > rows.length) words = `${rows.length} of ${words}: those that stand out most`;
      byId("gallery-more").hidden = state.shown >= rows.length;
    }
    byId("gallery-words").textContent = kind.words;
    byId("gallery-count").textContent = words;
    byId("gallery").replaceChildren(...shown);
    for (const button of byId("gallery-kinds").children) {
      button.setAttribute("aria-pressed", String(button.dataset.kind === kind.key));
    }
  }

  function listed(rows, value) {
    return sampleList(explorer, rows, (row) => value(row).toFixed(2), explorer.bring);
  }

  function group({ rows, clusters }) {
    const where = clusters > 1 ? `, in ${clusters} clusters` : "";
    return make(
      "div",
      { class: "duplicates" },
      make("p", { class: "quiet" }, `${rows.length} alike${where}`),
      listed(rows.slice(0, A_SCREENFUL), (row) => data.confidence[row]),
    );
  }

  function choose(kind) {
    Object.assign(state, { kind, shown: A_SCREENFUL });
    const choices = Object.entries(kind.groups ? GROUP_ORDERS : SAMPLE_ORDERS);
    sortField.replaceChildren(
      ...choices.map(([value, text]) => make("option", { value }, text)),
    );
    show();
  }

  function again() {
    state.shown = A_SCREENFUL;
    show();
  }

  byId("gallery-kinds").replaceChildren(
    ...kinds.map((kind) =>
      make(
        "button",
        { type: "button", "data-kind": kind.key, onclick: () => choose(kind) },
        kind.title,
      ),
    ),
  );
  clusterField.replaceChildren(
    make("option", { value: "" }, "all clusters"),
    ...[...data.sizes.keys()]
      .filter((k) => data.sizes[k])
      .map((k) => make("option", { value: k, "data-cluster-name": k }, memory.nameOf(k))),
  );
  sortField.addEventListener("change", again);
  clusterField.addEventListener("change", again);
  byId("gallery-more").addEventListener("click", () => {
    state.shown += 2 * A_SCREENFUL;
    show();
  });
  byId("galleries").hidden = false;
  choose(kinds[0]);
}
