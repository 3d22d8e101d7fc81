// Calls of the REST API; errors carry the server's sentence.

const ROOT = "/api/v1";

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
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
    throw new ApiError(0, "The server does not answer. Is `setnet serve` still running?");
  }
  if (response.status === 401 && promptForToken && path !== "/session") {
    await promptForToken();
    return call(method, path, { body, type: headers["Content-Type"], signal });
  }
  if (response.status === 204) return null;
  if (response.ok) return response.json();
  let detail = `The server answered with ${response.status}.`;
  try { detail = (await response.json()).detail || detail; } catch { /* no JSON: the number must do */ }
  throw new ApiError(response.status, detail);
}

const person = (name) => `/people/${encodeURIComponent(name)}`;

export const api = {
  status: () => call("GET", "/status"),
  faces: (file, signal) => call("POST", "/faces?preview=true", { body: file, type: /^image\//.test(file.type) ? file.type : "application/octet-stream", signal }),
  groups: (faces) => call("POST", "/faces/groups", { json: { faces } }),
  search: (query, signal) => call("POST", "/search", { json: query, signal }),
  photos: (cursor) => call("GET", `/photos?limit=60${cursor ? `&cursor=${cursor}` : ""}`),
  photo: (id) => call("GET", `/photos/${id}`),
  people: () => call("GET", "/people"),
  save: (person) => call("POST", "/people", { json: person }),
  rename: (name, to) => call("PATCH", person(name), { json: { name: to } }),
  merge: (into, others) => call("POST", `${person(into)}/merge`, { json: { others } }),
  remove: (name) => call("DELETE", person(name)),
  startIndex: (run) => call("POST", "/index", { json: run }),
  stopIndex: () => call("DELETE", "/index"),
  failures: () => call("GET", "/failures?limit=200"),
  forgetFolder: (folder) => call("POST", "/forget/folder", { json: { folder } }),
  forgetEverything: () => call("POST", "/forget/everything", { json: { confirm: "forget everything" } }),
  nextQuestion: (annotator) => call("GET", `/collect/next?${new URLSearchParams({ annotator })}`),
  storeAnswer: (answer) => call("POST", "/collect/answers", { json: answer }),
  undoAnswer: (annotator) => call("POST", "/collect/undo", { json: { annotator } }),
  begin: (token) => call("POST", "/session", { json: { token } }),
  indexEvents: () => new EventSource(`${ROOT}/index/events`),
};

export const urls = {
  thumbnail: (photo, size) => `${ROOT}/photos/${photo.id}/thumbnail?size=${size}&v=${photo.version}`,
  file: (photo) => `${ROOT}/photos/${photo.id}/file`,
  download: (photo) => `${ROOT}/photos/${photo.id}/file?download=true`,
  face: (id) => `${ROOT}/faces/${id}/picture`,
  questionPhoto: (question) => `${ROOT}/collect/questions/${question.id}/photo`,
  questionFace: (question) => `${ROOT}/collect/questions/${question.id}/face`,
  person: (saved) => `${ROOT}${person(saved.name)}/picture?v=${saved.examples}`,
};
