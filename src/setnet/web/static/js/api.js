// Calls of the REST API; errors carry the server's sentence, and whose a taken name is.

/** @typedef {import("api-types").components["schemas"]} Schemas */
/** @template {keyof Schemas} K @typedef {Promise<Schemas[K]>} Answer */

export const ROOT = "/api/v1";

export class ApiError extends Error {
  constructor(status, detail, person = null) {
    super(detail);
    this.status = status;
    this.person = person;
  }
}

let promptForToken = null;
export function onTokenNeeded(prompt) {
  promptForToken = prompt;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{json?: object, body?: BodyInit, type?: string, signal?: AbortSignal}} [sent]
 * @returns {Promise<any>}
 */
async function call(method, path, { json, body, type, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (json !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(json);
  } else if (type) headers["Content-Type"] = type;
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
  /** @type {Partial<Schemas["ProblemDetails"]>} */
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    /* no JSON: the number must do */
  }
  throw new ApiError(response.status, problem.detail || `The server answered with ${response.status}.`, problem.person);
}

export const get = (path, values = {}) => {
  const given = Object.entries(values).flatMap(([name, value]) => [value ?? []].flat().map((one) => [name, one]));
  return call("GET", given.length ? `${path}?${new URLSearchParams(given)}` : path);
};
export const post = (path, json, signal) => call("POST", path, { json, signal });
const person = (id) => `/people/${encodeURIComponent(id)}`;

export const api = {
  /** @returns {Answer<"Status">} */
  status: () => get("/status"),
  /** @returns {Answer<"UploadedFaces">} */
  faces: (file, signal) =>
    call("POST", "/faces?preview=true", {
      body: file,
      type: /^image\//.test(file.type) ? file.type : "application/octet-stream",
      signal,
    }),
  /** @returns {Answer<"FaceGroups">} */
  alike: (faces) => post("/faces/groups", { faces }),
  /** @returns {Answer<"Hits">} */
  search: (query, signal) => post("/search", query, signal),
  /** @returns {Answer<"SavedSearches">} */
  searches: () => get("/searches"),
  /** @returns {Answer<"SavedSearch">} */
  saveSearch: (name, kept) => call("PUT", `/searches/${encodeURIComponent(name)}`, { json: kept }),
  /** @returns {Answer<"Change">} */
  removeSearch: (name) => call("DELETE", `/searches/${encodeURIComponent(name)}`),
  /** @returns {Answer<"Timeline">} */
  timeline: (conditions) => get("/timeline", conditions),
  /** @returns {Answer<"Photos">} */
  photosByDate: (conditions, cursor, limit) => get("/timeline/photos", { ...conditions, cursor, limit }),
  /** @returns {Answer<"PhotoFolders">} */
  photoFolders: () => get("/timeline/folders"),
  /** @returns {Answer<"Photo">} */
  photo: (id) => get(`/photos/${id}`),
  /** @returns {Answer<"Camera">} */
  camera: (id) => get(`/photos/${id}/camera`),
  /** @returns {Answer<"Person">} */
  tag: (id, tagged) => post(`/photos/${id}/tags`, tagged),
  /** @returns {Answer<"Person">} */
  untag: (id, who) => call("DELETE", `/photos/${id}/tags?${new URLSearchParams({ person: who })}`),
  /** @returns {Answer<"Shots">} */
  shots: (id) => get(`/photos/${id}/shots`),
  /** @returns {Answer<"Change">} */
  undo: (change) => post("/changes/undo", { change }),

  /** @returns {Answer<"People">} */
  people: () => get("/people"),
  /** @returns {Answer<"Person">} */
  person: (id) => get(person(id)),
  /** @returns {Answer<"SavedPerson">} */
  save: (added) => post("/people", added),
  /** @returns {Answer<"Person">} */
  edit: (id, changes) => call("PATCH", person(id), { json: changes }),
  /** @returns {Answer<"Person">} */
  merge: (into, others, if_unlike) => post(`${person(into)}/merge`, { others, if_unlike }),
  /** @returns {Answer<"Change">} */
  remove: (id) => call("DELETE", person(id)),
  /** @returns {Answer<"Togethers">} */
  together: (id, limit) => get(`${person(id)}/together`, { limit }),
  /** @returns {Answer<"PersonPhotos">} */
  photosOf: (id, limit, cursor) => get(`${person(id)}/photos`, { limit, cursor, collapse: true }),
  /** @returns {Answer<"Person">} */
  confirm: (id, photo, face) => post(`${person(id)}/confirm`, { photo, face }),
  /** @returns {Answer<"SavedPerson">} */
  reject: (id, photo, face) => post(`${person(id)}/reject`, { photo, face }),
  /** @returns {Answer<"ExampleFaces">} */
  examples: (id) => get(`${person(id)}/examples`),
  /** @returns {Answer<"Person">} */
  removeExamples: (id, numbers) =>
    call("DELETE", `${person(id)}/examples?${numbers.map((number) => `number=${number}`).join("&")}`),
  /** @returns {Answer<"Person">} */
  moveExamples: (id, examples, to) => post(`${person(id)}/move`, { examples, to }),
  /** @returns {Answer<"Person">} */
  split: (id, examples, name) => post(`${person(id)}/split`, { examples, name }),

  /** @returns {Answer<"Groups">} */
  groups: (which) => get("/groups", which),
  /** @returns {Answer<"GroupMembers">} */
  group: (id, limit, cursor) => get(`/groups/${id}`, { limit, cursor }),
  /** @returns {Answer<"Run">} */
  discover: () => post("/groups/discover", {}),
  /** @returns {Answer<"SavedPerson">} */
  nameGroup: (id, named) => post(`/groups/${id}/name`, named),
  /** @returns {Answer<"Group">} */
  hideGroup: (id, hidden) => call("PATCH", `/groups/${id}`, { json: { hidden } }),
  /** @returns {Answer<"Group">} */
  rejectGroup: (id, who) => post(`/groups/${id}/reject`, { person: who }),
  /** @returns {Answer<"Suggestions">} */
  suggestions: (who, limit) => get("/suggestions", { person: who, limit }),

  /** @returns {Answer<"Folders">} */
  folders: (path) => get("/folders", { path }),
  /** @returns {Answer<"Run">} */
  startIndex: (run) => post("/index", run),
  /** @returns {Answer<"Run">} */
  stopIndex: () => call("DELETE", "/index"),
  /** @returns {Answer<"Failures">} */
  failures: () => get("/failures", { limit: 200 }),
  /** @returns {Answer<"Forgotten">} */
  forgetFolder: (folder) => post("/forget/folder", { folder }),
  /** @returns {Answer<"Forgotten">} */
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
