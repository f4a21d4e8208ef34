// Finding clusters by their name, and samples by a part of their id or text.

const MOST_FOUND = 20;
const MOST_CLUSTERS_FOUND = 5;
const AROUND = 40; // characters of a text before what was looked for

function listenToSearch(field, list, explorer) {
  const { data, memory } = explorer;
  const { ids, texts } = data;
  let lower = null; // made at the first search: it takes a moment

  function find(text) {
    lower ??= { ids: ids.map(lowered), texts: texts?.map(lowered) ?? [] };
    const wanted = lowered(text);
    const has = (one) => one.includes(wanted);
    const exact = lower.ids.indexOf(wanted);
    const rows = exact >= 0 ? [exact] : [];
    lower.ids.forEach((id, row) => {
      if (row !== exact && has(id)) rows.push(row);
    });
    const named = rows.length;
    lower.texts.forEach((one, row) => {
      if (has(one) && !has(lower.ids[row])) rows.push(row);
    });
    const clusters = [...data.sizes.keys()].filter(
      (k) => data.sizes[k] && has(lowered(memory.nameOf(k))),
    );
    return { rows, named, clusters };
  }

  function entry(attributes, onclick, ...content) {
    const choose = () => {
      list.hidden = true;
      onclick();
    };
    return make("li", {}, make("button", { type: "button", ...attributes, onclick: choose }, ...content));
  }

  function sampleEntry(row, text) {
    return entry(
      { "data-row": row },
      () => explorer.walkTo(row, true),
      make("bdi", {}, ids[row]),
      text === null ? null : make("span", { class: "snippet", dir: "auto" }, snippet(row, text)),
    );
  }

  // A text from shortly before the place where something was found in it.
  function snippet(row, text) {
    const start = Math.max(0, lower.texts[row].indexOf(lowered(text)) - AROUND);
    return (start > 0 ? "…" : "") + shortened(texts[row].slice(start), 3 * AROUND);
  }

  function show() {
    const text = field.value.trim();
    list.hidden = !text;
    if (!text) return list.replaceChildren();
    const low = field.getBoundingClientRect().bottom > 0.6 * window.innerHeight;
    list.classList.toggle("up", low); // where there is room for it
    const { rows, named, clusters } = find(text);
    const entries = clusters.slice(0, MOST_CLUSTERS_FOUND).map((k) =>
      entry(
        { "data-cluster": k },
        () => explorer.showCluster(k),
        swatch(explorer.clusterColour(k)),
        " ",
        make("bdi", {}, memory.nameOf(k)),
      ),
    );
    rows.slice(0, MOST_FOUND).forEach((row, place) => {
      entries.push(sampleEntry(row, place < named ? null : text));
    });
    if (rows.length > 1) {
      const all = `Show all ${rows.length.toLocaleString("en")} samples on the map`;
      entries.push(entry({ id: "found-all" }, () => explorer.select(rows), all));
    }
    if (!entries.length) {
      const where = texts ? "id or text" : "id";
      entries.push(make("li", { class: "quiet" }, `No sample with this in its ${where}, no cluster of this name`));
    }
    list.replaceChildren(...entries);
  }

  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) show();
    const first = list.querySelector("button");
    if (event.key === "Enter" && first) first.click();
    else if (event.key === "ArrowDown" && first) first.focus();
    else if (event.key === "Escape") list.hidden = true;
    else return;
    event.preventDefault();
  });
  list.addEventListener("keydown", (event) => {
    const item = document.activeElement.parentElement;
    if (event.key === "ArrowDown") item.nextElementSibling?.firstChild.focus?.();
    else if (event.key === "ArrowUp") {
      (item.previousElementSibling?.firstChild ?? field).focus();
    } else if (event.key === "Escape") field.focus();
    else return;
    event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!field.contains(event.target) && !list.contains(event.target)) list.hidden = true;
  });
}

function lowered(text) {
  return text.toLowerCase();
}
