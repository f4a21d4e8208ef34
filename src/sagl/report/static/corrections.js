// What people say of samples and clusters, beyond names and marks: for `sagl refit`.
//
// Each is { kind, rows } or { kind, clusters }; a label has a cluster or a new name, too.

const MOST_APART = 20; // samples of which no two belong together: every pair is meant
const MOST_LISTED = 3; // samples that are called by their ids, not counted

function inWords({ kind, rows, clusters, to }, data, memory) {
  const samples = () =>
    rows.length > MOST_LISTED
      ? `${rows.length.toLocaleString("en")} samples`
      : rows.map((row) => data.ids[row]).join(", ");
  const names = () => clusters.map(memory.nameOf);
  if (kind === "label") {
    return `${samples()} belongs to ${typeof to === "number" ? memory.nameOf(to) : to}`;
  }
  if (kind === "must_link") return `${samples()} belong together`;
  if (kind === "cannot_link") return `${samples()}: no two belong together`;
  if (kind === "merge") return `${names().join(" and ")} are one`;
  return `${names()[0]} is two`;
}

// Whether what the browser kept fits this page.
function isSaid({ kind, rows, clusters }, data) {
  const known = (list, n) =>
    Array.isArray(list) && list.every((k) => Number.isInteger(k) && k >= 0 && k < n);
  if (kind === "merge" || kind === "split") return known(clusters, data.sizes.length);
  return ["label", "must_link", "cannot_link"].includes(kind) && known(rows, data.ids.length);
}

// One thing is said once; the last that is said of a sample's cluster holds.
function isSameSaying(one, other) {
  if (one.kind !== other.kind) return false;
  const about = ({ rows, clusters }) =>
    [...(rows ?? clusters)].sort((a, b) => a - b).join();
  return about(one) === about(other);
}

// What `sagl refit RUN --corrections FILE` reads.
function correctionsJson(data, memory) {
  const mark = (row) => ({ row: data.row[row], sample: data.ids[row] });
  const of = (kind) => memory.said.filter((saying) => saying.kind === kind);
  const corrections = {
    format: "sagl-corrections",
    version: 1,
    run: data.run,
    names: Object.fromEntries(memory.names),
    labels: of("label").map(({ rows, to }) => ({ ...mark(rows[0]), cluster: to })),
    wrong: [...memory.wrong].sort((a, b) => a - b).map(mark),
    must_link: of("must_link").map(({ rows }) => rows.map(mark)),
    cannot_link: of("cannot_link").map(({ rows }) => rows.map(mark)),
    merge: of("merge").map(({ clusters }) => clusters),
    split: of("split").map(({ clusters }) => clusters[0]),
  };
  return JSON.stringify(corrections, null, 2) + "\n";
}

// For the panel: buttons to say it with, and a list of what was said.

function createCorrecting(explorer) {
  const { data, memory } = explorer;
  const known = () => [...data.sizes.keys()].filter((k) => data.sizes[k] > 0);
  const button = (id, text, onclick, pressed = null) =>
    make("button", { type: "button", id, onclick, "aria-pressed": pressed }, text);

  // What was said so far of what is shown.
  const saidOf = (test) =>
    memory.said
      .filter(test)
      .map((saying) => make("p", { class: "quiet", dir: "auto" }, inWords(saying, data, memory)));

  return {
    ofSample(row) {
      const one = explorer.linking();
      const said = memory.said.find(({ kind, rows }) => kind === "label" && rows[0] === row);
      const to = said?.to ?? "";
      const field = make("input", {
        id: "belongs-to",
        type: "text",
        list: "cluster-names",
        value: typeof to === "number" ? memory.nameOf(to) : to,
        placeholder: "a cluster, or a new name",
        maxlength: 200,
        dir: "auto",
        onchange: () => explorer.label(row, field.value),
      });
      const names = known().map((k) => make("option", { value: memory.nameOf(k) }));
      const linking =
        one >= 0 && one !== row
          ? [
              make("p", { class: "quiet" }, "With ", make("bdi", {}, data.ids[one]), ":"),
              button("same-cluster", "Belong together", () => explorer.link(row, "must_link")),
              button("other-cluster", "Do not", () => explorer.link(row, "cannot_link")),
              button("link-none", "Never mind", () => explorer.linkFrom(-1)),
            ]
          : one === row
            ? [
                make("p", { class: "quiet" }, "Now choose another sample to compare it with."),
                button("link-none", "Never mind", () => explorer.linkFrom(-1)),
              ]
            : [button("link-from", "Compare with another", () => explorer.linkFrom(row))];
      return [
        make("label", { class: "field" }, "Belongs to", field),
        make("datalist", { id: "cluster-names" }, ...names),
        make("div", { class: "actions" }, ...linking),
        ...saidOf(({ kind, rows }) => kind.endsWith("_link") && rows.includes(row)),
      ];
    },

    ofCluster(k) {
      const split = memory.said.some((saying) =>
        isSameSaying(saying, { kind: "split", clusters: [k] }),
      );
      const others = known().filter((other) => other !== k);
      const choice = make(
        "select",
        { id: "merge-with", onchange: () => explorer.say("merge", [k, Number(choice.value)]) },
        make("option", { value: "" }, "choose…"),
        ...others.map((other) => make("option", { value: other }, memory.nameOf(other))),
      );
      const words = split ? "To be split" : "This is two: split it";
      return [
        make("label", { class: "field" }, "It is one with", choice),
        make(
          "div",
          { class: "actions" },
          button("split", words, () => explorer.say("split", [k]), String(split)),
        ),
        ...saidOf(({ kind, clusters }) => kind === "merge" && clusters.includes(k)),
      ];
    },

    ofSelection(rows) {
      if (rows.length < 2) return [];
      return [
        button("selection-together", "Belong together", () =>
          explorer.sayOf("must_link", rows),
        ),
        rows.length <= MOST_APART
          ? button("selection-apart", "No two belong together", () =>
              explorer.sayOf("cannot_link", rows),
            )
          : null,
      ];
    },

    // What was said so far; each can be taken back.
    list() {
      if (!memory.said.length) return [];
      return [
        make("h3", { tabindex: -1 }, "Corrections"),
        make(
          "ul",
          { class: "said" },
          ...memory.said.map((saying) =>
            make(
              "li",
              {},
              make("span", { dir: "auto" }, inWords(saying, data, memory)),
              make(
                "button",
                {
                  type: "button",
                  "aria-label": "Take it back",
                  onclick: () => explorer.takeBack(saying),
                },
                "×",
              ),
            ),
          ),
        ),
        make("p", { class: "quiet" }, "Corrections as JSON, below the map, is what "
          + "sagl refit reads."),
      ];
    },
  };
}
