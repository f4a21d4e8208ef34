// Building the page: text is always set as text, never as markup.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A patch of colour.
function swatch(colour) {
  return makeSvg(
    "svg",
    { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" },
    makeSvg("circle", { cx: 5, cy: 5, r: 5, fill: colour }),
  );
}

// A share of one, as a line.
function shareBar(share) {
  return makeSvg(
    "svg",
    { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    makeSvg("rect", { width: 100, height: 10 }),
    makeSvg("rect", { width: 100 * share, height: 10 }),
  );
}

// Numbers as people read them: 1,258 and 0.031.
function counted(n, one, many) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
