// The address of the page: "#search?with=s1a&photo=12" has the view, what it is asked and the photo that is looked at,
// so that Back, a reload and a bookmark bring all of it back.

export function read() {
  const [path, text = ""] = location.hash.slice(1).split("?");
  const [name, id] = path.split("/");
  return {
    path: path || "search",
    name: name || "search",
    id: id && decodeURIComponent(id),
    values: new URLSearchParams(text),
  };
}

const compose = (path, values) => `#${path}${values.size ? `?${values}` : ""}`;

let replacesNext = false;
let typed = { field: null, hash: "" }; // the last entry that was made by typing

// Stores what the view shows, with a new entry for Back unless the one before was only a way to it: the same `field` was typed into.
export function write(path, values, { push = true, field = null } = {}) {
  const hash = compose(path, values);
  if (hash === location.hash || (hash === "#search" && !location.hash)) {
    replacesNext = false;
    return;
  }
  const goesOn = field && field === typed.field && location.hash === typed.hash;
  history[push && !replacesNext && !goesOn ? "pushState" : "replaceState"](null, "", hash);
  typed = { field, hash: location.hash };
  replacesNext = false;
}

// Leaves for another view as a link does.
export function go(path, values = new URLSearchParams()) {
  const hash = compose(path, values);
  if (hash === location.hash) return;
  if (replacesNext) {
    replacesNext = false;
    location.replace(hash);
  } else location.hash = hash;
}

function withPhoto(id) {
  const { path, values } = read();
  if (id === null) values.delete("photo");
  else values.set("photo", id);
  return compose(path, values);
}

export const photoInAddress = () => read().values.get("photo");

// Looking at a photo is a step that Back takes back; turning to the next photo is not.
export function enterPhoto(id) {
  const open = photoInAddress();
  if (open === id) return;
  if (open) history.replaceState(history.state, "", withPhoto(id));
  else history.pushState({ photo: true }, "", withPhoto(id));
}

// `onward`: what is done next leads elsewhere, and takes the place of the photo in the history.
export function leavePhoto(onward = false) {
  if (!photoInAddress()) return;
  if (history.state?.photo && !onward) {
    history.back();
    return;
  }
  replacesNext = onward && Boolean(history.state?.photo);
  history.replaceState(null, "", withPhoto(null));
}
