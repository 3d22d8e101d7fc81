// The query as a part of the address, and back: people by where their examples are, conditions by name.

import { api } from "../api.js";
import { saved } from "../saved_people.js";
import { knownFace } from "../uploads.js";
import { DEFAULTS, exampleIn, newPerson, query } from "./query.js";

const NAME = (text) => `n${encodeURIComponent(text).replaceAll("~", "%7E")}`;

const exampleText = (example) =>
  example.photo ? `f${example.photo.id}.${example.face}` : `u${example.upload}.${example.face}`;

function personText(person) {
  return [
    person.saved && `s${person.saved.id}`,
    person.group?.id,
    ...person.examples.filter((example) => example.photo || example.upload).map(exampleText),
    person.name && NAME(person.name),
  ]
    .filter(Boolean)
    .join("~");
}

export function queryValues() {
  const values = new URLSearchParams();
  for (const person of query.people) values.append(person.without ? "without" : "with", personText(person));
  for (const [name, value] of Object.entries(query.filters))
    if (value !== DEFAULTS[name]) values.set(name, String(value));
  return values;
}

/** @returns {import("./query.js").Conditions} */
function filtersIn(values) {
  const found = Object.fromEntries(
    Object.entries(DEFAULTS).map(([name, value]) => {
      const given = values.get(name);
      if (given === null) return [name, value];
      return [
        name,
        typeof value === "boolean" ? given === "true" : typeof value === "number" ? Number(given) || value : given,
      ];
    }),
  );
  return { ...DEFAULTS, ...found };
}

async function exampleOf(kind, rest) {
  const [key, number] = rest.split(".");
  const face = Number(number);
  if (kind === "u") {
    const id = await knownFace(key, face);
    return id && { id, upload: key, face };
  }
  const photo = await api.photo(key).catch(() => null);
  return photo?.faces[face] ? exampleIn(photo, face) : null;
}

async function personOf(text) {
  const person = { examples: [] };
  for (const part of text.split("~")) {
    const [kind, rest] = [part[0], part.slice(1)];
    if (kind === "s") person.saved = saved.people.find((known) => known.id === rest);
    else if (kind === "g") person.group = await api.group(part, 1).catch(() => null);
    else if (kind === "n") person.name = decodeURIComponent(rest);
    else if (kind === "f" || kind === "u") person.examples.push(await exampleOf(kind, rest));
  }
  person.examples = person.examples.filter(Boolean);
  return person.saved || person.group || person.examples.length ? person : null;
}

// Makes the query what the address says. Resolves to whether it was another before, and how many people are not there any more.
export async function follow(values) {
  const now = queryValues();
  const asked = new URLSearchParams(values);
  asked.delete("photo");
  if (String(now) === String(asked)) return { isNew: false, gone: 0 };
  const known = new Map(query.people.map((person) => [personText(person), person]));
  const texts = [...asked].filter(([name]) => name === "with" || name === "without");
  const people = await Promise.all(
    texts.map(async ([name, text]) => {
      const person = known.get(text) ?? (await personOf(text).catch(() => null));
      return person && { ...person, without: name === "without" };
    }),
  );
  query.people = [];
  for (const person of people) if (person) query.people.push(newPerson(person));
  query.filters = filtersIn(asked);
  return { isNew: true, gone: people.filter((person) => !person).length };
}
