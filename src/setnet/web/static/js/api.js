// Calls of the REST API; errors carry the server's sentence, and whose a taken name is.

export const ROOT = "/api/v1";

export class ApiError extends Error {
  constructor(status, detail, person = null) {
    super(detail);
    this.status = status;
    this.person = person;
  }
}

let promptForToken = null;
export function onTokenNeeded(prompt) { promptForToken = prompt; }

async function call(method, path, { json, body, type, signal } = {}) {
  const headers = {};
  if (json !== undefined) { headers["Content-Type"] = "application/json"; body = JSON.stringify(json); }
  else if (type) headers["Content-Type"] = type;
  let response;
  try {
    response = await fetch(ROOT + path, { method, headers, body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer. Is setnet still running?");
  }
  if (response.status === 401 && promptForToken && path !== "/session") {
    await promptForToken();
    return call(method, path, { body, type: headers["Content-Type"], signal });
  }
  if (response.status === 204) return null;
  if (response.ok) return response.json();
  let problem = {};
  try { problem = await response.json(); } catch { /* no JSON: the number must do */ }
  throw new ApiError(response.status, problem.detail || `The server answered with ${response.status}.`, problem.person);
}

export const get = (path, values = {}) => {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return call("GET", given.length ? `${path}?${new URLSearchParams(given)}` : path);
};
export const post = (path, json, signal) => call("POST", path, { json, signal });
const person = (id) => `/people/${encodeURIComponent(id)}`;

export const api = {
  status: () => get("/status"),
  faces: (file, signal) => call("POST", "/faces?preview=true", { body: file, type: /^image\//.test(file.type) ? file.type : "application/octet-stream", signal }),
  alike: (faces) => post("/faces/groups", { faces }),
  search: (query, signal) => post("/search", query, signal),
  timeline: () => get("/timeline"),
  photosByDate: (offset, limit) => get("/timeline/photos", { offset, limit }),
  photo: (id) => get(`/photos/${id}`),
  shots: (id) => get(`/photos/${id}/shots`),
  undo: (change) => post("/changes/undo", { change }),

  people: () => get("/people"),
  person: (id) => get(person(id)),
  save: (added) => post("/people", added),
  edit: (id, changes) => call("PATCH", person(id), { json: changes }),
  merge: (into, others, if_unlike) => post(`${person(into)}/merge`, { others, if_unlike }),
  remove: (id) => call("DELETE", person(id)),
  photosOf: (id, limit, cursor) => get(`${person(id)}/photos`, { limit, cursor }),
  confirm: (id, photo, face) => post(`${person(id)}/confirm`, { photo, face }),
  reject: (id, photo, face) => post(`${person(id)}/reject`, { photo, face }),
  examples: (id) => get(`${person(id)}/examples`),
  removeExamples: (id, numbers) => call("DELETE", `${person(id)}/examples?${numbers.map((number) => `number=${number}`).join("&")}`),
  moveExamples: (id, examples, to) => post(`${person(id)}/move`, { examples, to }),
  split: (id, examples, name) => post(`${person(id)}/split`, { examples, name }),

  groups: (which) => get("/groups", which),
  group: (id, limit, cursor) => get(`/groups/${id}`, { limit, cursor }),
  discover: () => post("/groups/discover", {}),
  nameGroup: (id, named) => post(`/groups/${id}/name`, named),
  hideGroup: (id, hidden) => call("PATCH", `/groups/${id}`, { json: { hidden } }),
  rejectGroup: (id, who) => post(`/groups/${id}/reject`, { person: who }),
  suggestions: (who, limit) => get("/suggestions", { person: who, limit }),

  folders: (path) => get("/folders", { path }),
  startIndex: (run) => post("/index", run),
  stopIndex: () => call("DELETE", "/index"),
  failures: () => get("/failures", { limit: 200 }),
  forgetFolder: (folder) => post("/forget/folder", { folder }),
  forgetEverything: () => post("/forget/everything", { confirm: "forget everything" }),
  begin: (token) => post("/session", { token }),
  end: () => call("DELETE", "/session"),

  indexEvents: () => new EventSource(`${ROOT}/index/events`),
};

export const urls = {
  thumbnail: (photo, size) => `${ROOT}/photos/${photo.id}/thumbnail?size=${size}&v=${photo.version}`,
  sprite: (photo) => `${ROOT}/photos/${photo.id}/sprite?v=${photo.version}`,
  file: (photo) => `${ROOT}/photos/${photo.id}/file`,
  download: (photo) => `${ROOT}/photos/${photo.id}/file?download=true`,
  archive: (photos) => `${ROOT}/archive?photos=${photos.map((photo) => photo.id).join(",")}`,
  upload: (id) => `${ROOT}/faces/${id}/picture`,
  face: ({ photo, face }, size = 160) => `${ROOT}/photos/${photo}/faces/${face}/picture?size=${size}`,
  person: (saved) => `${ROOT}${person(saved.id)}/picture?v=${saved.examples}-${saved.cover ?? 0}`,
  example: (id, number) => `${ROOT}${person(id)}/examples/${number}/picture`,
};
