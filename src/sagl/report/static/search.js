// Finding samples by a part of their id.

const MOST_FOUND = 20;

function listenToSearch(field, list, explorer) {
  const { ids } = explorer.data.arrays;
  let lower = null; // made at the first search: it takes a moment

  function find(text) {
    lower ??= ids.map((id) => id.toLowerCase());
    const wanted = text.toLowerCase();
    const exact = lower.indexOf(wanted);
    const rows = exact >= 0 ? [exact] : [];
    for (let row = 0; row < lower.length && rows.length < MOST_FOUND; row++) {
      if (row !== exact && lower[row].includes(wanted)) rows.push(row);
    }
    return rows;
  }

  function show() {
    const text = field.value.trim();
    const rows = text ? find(text) : [];
    const entries = rows.map((row) =>
      make(
        "li",
        {},
        make(
          "button",
          { type: "button", "data-row": row, onclick: () => choose(row) },
          make("bdi", {}, ids[row]),
        ),
      ),
    );
    if (text && !rows.length) {
      entries.push(make("li", { class: "quiet" }, "No sample with this in its id"));
    }
    list.replaceChildren(...entries);
    list.hidden = !text;
    return rows;
  }

  function choose(row) {
    list.hidden = true;
    explorer.walkTo(row, true);
  }

  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) show();
    const buttons = list.querySelectorAll("button");
    if (event.key === "Enter" && buttons.length) choose(Number(buttons[0].dataset.row));
    else if (event.key === "ArrowDown" && buttons.length) buttons[0].focus();
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
