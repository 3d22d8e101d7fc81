// The query: people and conditions, one object that everything on the search view listens to.

export const MOST_PEOPLE = 16;

const listeners = new Set();
let counter = 0;

export const DEFAULTS = {
  need: "any",
  atLeast: 2,
  only: false,
  sure: false,
  after: "",
  before: "",
  minFaces: "",
  maxFaces: "",
  folder: "",
  kind: "any",
  mode: "exact",
  apart: false,
  order: "best",
};

/** @typedef {typeof DEFAULTS} Conditions */

export const query = {
  people: [],
  filters: { ...DEFAULTS },
  hidden: new Set(), // matches the user said are wrong: "person key/photo/face"
};

export function onChange(listener) {
  listeners.add(listener);
}
// `field`: the element that is typed into; the whole of what is typed is one change of the address.
export function changed(what = "query", field = null) {
  for (const listener of listeners) listener(what, field);
}

export const wanted = () => query.people.filter((person) => !person.without);
export const unwanted = () => query.people.filter((person) => person.without);
export const label = (person) => person.name || person.saved?.name || `Person ${person.number}`;

// An example is {id, upload, face} of an uploaded file, or {photo, face, box} of a photo in the library; `saved` and `group` are the API's.
export function newPerson({
  examples = [],
  saved = null,
  group = null,
  name = "",
  without = false,
  key = null,
  number = null,
}) {
  counter = query.people.length ? counter + 1 : 1;
  return { key: key ?? `p${Date.now()}-${counter}`, number: number ?? counter, name, saved, group, examples, without };
}

// An example of a person, by its photo in the library.
export const exampleIn = (photo, face) => ({
  photo: { id: photo.id, version: photo.version, width: photo.width, height: photo.height },
  face,
  box: photo.faces[face].box,
});

export function addPerson(given) {
  if (query.people.length >= MOST_PEOPLE) throw new Error(`A query has at most ${MOST_PEOPLE} people.`);
  const person = newPerson(given);
  query.people.push(person);
  changed();
  return person;
}

export function addExamples(person, examples) {
  person.examples.push(...examples);
  changed();
}

export function removePerson(person) {
  query.people = query.people.filter((other) => other !== person);
  changed();
}

// Saved people as they are called by now; whoever was removed or merged leaves the query.
export function adopt(people) {
  const known = new Map(people.map((person) => [person.id, person]));
  query.people = query.people.filter((person) => !person.saved || known.has(person.saved.id));
  for (const person of query.people) if (person.saved) person.saved = known.get(person.saved.id);
}

export function hide(person, photoId, face, hidden = true) {
  query.hidden[hidden ? "add" : "delete"](`${person.key}/${photoId}/${face}`);
  changed("hidden");
}

export function clearQuery() {
  query.people = [];
  query.filters = { ...DEFAULTS };
  changed();
}

export const uploadsOf = (people = query.people) =>
  people.flatMap((person) => person.examples.filter((example) => example.id));

export const isHidden = (person, photoId, face) => query.hidden.has(`${person.key}/${photoId}/${face}`);

export function examplesOf(person) {
  return {
    faces: person.examples.filter((e) => e.id).map((e) => e.id),
    photo_faces: person.examples.filter((e) => e.photo).map((e) => ({ photo: e.photo.id, face: e.face })),
  };
}

const personQuery = (person) => ({
  name: label(person),
  ...(person.saved && { saved: person.saved.id }),
  ...(person.group && { group: person.group.id }),
  ...examplesOf(person),
});

export function needed() {
  const { need, atLeast } = query.filters;
  const total = wanted().length;
  if (need === "all") return total;
  return need === "some" ? Math.min(Math.max(1, atLeast), total) : 1;
}

// The conditions on photos as the API takes them, whoever is looked for.
export function conditions() {
  const f = query.filters;
  const number = (text) => (text === "" ? null : Math.max(0, Math.floor(Number(text)) || 0));
  return {
    after: f.after || null,
    before: f.before ? dayAfter(f.before) : null,
    folder: f.folder || null,
    min_faces: number(f.minFaces),
    max_faces: number(f.maxFaces),
    kind: f.kind === "any" ? null : f.kind,
  };
}

export function request() {
  const f = query.filters;
  return {
    ...conditions(),
    people: wanted().map(personQuery),
    without: unwanted().map(personQuery),
    at_least: needed(),
    only: f.only,
    sure: f.sure,
    mode: f.mode,
    newest: f.order === "newest",
    totals: true,
    collapse: !f.apart,
    limit: 60,
  };
}

// "To" a day means up to its end; the API's `before` leaves its day out.
function dayAfter(day) {
  const date = new Date(`${day}T12:00:00Z`);
  if (Number.isNaN(date.getTime())) return day;
  date.setUTCDate(date.getUTCDate() + 1);
  return date.toISOString().slice(0, 10);
}
