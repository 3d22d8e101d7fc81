// Elements without a framework: h("button", {class: "x", onclick}, "text", child).

// The element that has the focus.
export const active = () => /** @type {HTMLElement | null} */ (document.activeElement);

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const PATHS = {
  back: "M15 5l-7 7 7 7",
  ban: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M5.6 5.6l12.8 12.8",
  calendar: "M5 6h14v14H5zM5 10h14M9 3v4M15 3v4",
  check: "M5 12.5l4.500 4.500L19 7.500",
  close: "M6 6l12 12M18 6L6 18",
  down: "M6 9l6 6 6-6",
  download: "M12 4v11m-5-5l5 5 5-5M5 20h14",
  eye: "M3 12c2.500-4 5.500-6 9-6s6.500 2 9 6c-2.500 4-5.500 6-9 6s-6.500-2-9-6M12 9.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5",
  file: "M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.700h4M4 14.300h4M16 9.700h4M16 14.300h4",
  forward: "M9 5l7 7-7 7",
  folder: "M3 7a1 1 0 0 1 1-1h5l2 2h9a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1z",
  leave: "M10 4H5a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h5M9 12h11m-4-4l4 4-4 4",
  merge: "M7 4v5a5 5 0 0 0 5 5m5-10v5a5 5 0 0 1-5 5m0 0v6",
  minus: "M5 12h14",
  pencil: "M4 20l1-4L16 5l3 3L8 19z",
  photo: "M4 6h16v12H4zM4 16l5-5 4 4 3-3 4 4M15.500 9.500h.01",
  people:
    "M9 5a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7M2.500 20c.6-3.800 3-5.500 6.500-5.500s5.900 1.700 6.500 5.500M16 5.300a3.300 3.300 0 0 1 0 6.400M17.500 14.800c2.300.6 3.600 2.300 4 5.200",
  plus: "M12 5v14M5 12h14",
  search: "M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13M15.500 15.500L20 20",
  save: "M7 4h10v16l-5-4-5 4z",
  share: "M12 15V4m-4 4l4-4 4 4M6 12v8h12v-8",
  stack: "M4 8h11v11H4zM8 5h11v11",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  for (const [key, value] of Object.entries({
    fill: "none",
    stroke: "currentColor",
    "stroke-width": "1.8",
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  }))
    path.setAttribute(key, value);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, onclick, more = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...more },
    icon(name),
  );
}

export function plural(number, one, many = `${one}s`) {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

export function debounce(call, milliseconds) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), milliseconds);
  };
}
