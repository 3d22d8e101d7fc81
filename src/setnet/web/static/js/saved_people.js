// The saved people, loaded once for all views, with the names that find them.

import { api } from "./api.js";

export const saved = { people: [] };

/** @type {Promise<any>} */
let loading = Promise.resolve();

export function loadSaved() {
  loading = api.people().then(({ people }) => (saved.people = people));
  return loading;
}

// Until the people are known who are being loaded: hundreds of them take seconds, as their photos are counted.
export const whenKnown = () => loading.catch(() => {});

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase().trim();
const namesOf = (person) => [person.name, ...person.aliases];

// Whoever has a name that begins with the text, then whoever has a word in a name that does.
export function namedLike(text) {
  const wanted = plain(text);
  const rank = (person) =>
    Math.min(
      ...namesOf(person).map((name) => {
        const known = plain(name);
        if (known.startsWith(wanted)) return 0;
        return known.split(/[\s-]+/).some((word) => word.startsWith(wanted)) ? 1 : 2;
      }),
    );
  return saved.people
    .map((person) => ({ person, rank: rank(person) }))
    .filter((found) => found.rank < 2)
    .sort((a, b) => a.rank - b.rank)
    .map((found) => found.person);
}

// Whoever is called so but for upper and lower case, as the library sees it.
export function called(text) {
  const wanted = text.normalize("NFKC").trim().toLocaleLowerCase();
  return (
    saved.people.find((person) =>
      namesOf(person).some((name) => name.normalize("NFKC").toLocaleLowerCase() === wanted),
    ) ?? null
  );
}
