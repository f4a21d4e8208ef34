// The start: read the samples, open the explorer, connect the buttons of the page.

async function start() {
  const status = byId("explorer-status");
  const element = byId("payload");
  if (!element) return;
  try {
    const data = await readPayload(element);
    byId("explorer-app").hidden = false;
    const explorer = createExplorer(data);
    connect(explorer);
    document.documentElement.dataset.explorer = explorer.kind; // ready
  } catch (error) {
    byId("explorer-app").hidden = true;
    status.textContent = `The explorer could not start: ${error.message}`;
    throw error;
  }
}

function connect(explorer) {
  const on = (id, action) => byId(id).addEventListener("click", action);
  on("zoom-in", () => explorer.zoom(1.4));
  on("zoom-out", () => explorer.zoom(1 / 1.4));
  on("zoom-fit", () => explorer.fit());
  on("lasso", () => explorer.toggleLasso());
  on("export-labels", () => explorer.exportLabels());
  on("export-names", () => explorer.exportNames());
  byId("colour").addEventListener("change", (event) =>
    explorer.colourBy(Number(event.target.value)),
  );
  listenToGestures(byId("overlay"), explorer);
  listenToSearch(byId("search"), byId("found"), explorer);
  for (const button of document.querySelectorAll("button[data-sample]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      explorer.walkTo(Number(button.dataset.sample), true);
      byId("explorer").scrollIntoView();
    });
  }
  for (const button of document.querySelectorAll("button[data-show-cluster]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      explorer.showCluster(Number(button.dataset.showCluster));
      byId("explorer").scrollIntoView();
      byId("cluster-name").focus({ preventScroll: true });
    });
  }
}

start();
