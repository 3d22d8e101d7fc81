// What is typed into the search field: "Anna Ben -Carl 2019 Beach" is two people, one who must not be there, a year, a folder.

import { called, namedLike } from "../saved_people.js";

const YEAR = /^(?:19|20)\d\d$/;
const MOST_WORDS = 6; // of one name

const lastName = (folder) => folder.split(/[\\/]/).filter(Boolean).at(-1) ?? folder;
const isLike = (folder, text) => lastName(folder).toLocaleLowerCase().startsWith(text.toLocaleLowerCase());

// Who is meant by a whole name, or by the beginning of only one.
function whoIs(text) {
  const like = namedLike(text);
  return called(text) ?? (like.length === 1 ? like[0] : null);
}

// `{people: [{person, without}], year, folder, rest}`: `rest` are the words that mean nothing here.
export function understand(text, folders) {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const found = { people: [], year: null, folder: null, rest: [] };
  for (let at = 0; at < words.length;) {
    const without = words[at].length > 1 && words[at].startsWith("-");
    const name = (length) =>
      words
        .slice(at, at + length)
        .join(" ")
        .slice(without ? 1 : 0);
    let length = Math.min(MOST_WORDS, words.length - at);
    while (length && !whoIs(name(length))) length -= 1;
    const folder = folders.find((one) => isLike(one, words[at]));
    if (length) found.people.push({ person: whoIs(name(length)), without });
    else if (YEAR.test(words[at])) found.year = words[at];
    else if (folder) found.folder = folder;
    else found.rest.push(words[at]);
    at += length || 1;
  }
  return found;
}

// What may be meant by the last words: `{people, years, folders, without}`; `before` is what stands before them.
export function completions(text, { years, folders }) {
  const words = text.trim().split(/\s+/);
  for (let from = 0; from < words.length; from += 1) {
    const without = words[from].startsWith("-");
    const last = words
      .slice(from)
      .join(" ")
      .slice(without ? 1 : 0);
    if (!last) continue;
    const people = namedLike(last);
    const isOne = from === words.length - 1 && !without;
    const found = {
      people,
      years: isOne && /^\d+$/.test(last) ? years.filter((year) => year.startsWith(last)) : [],
      folders: isOne && last.length > 1 ? folders.filter((folder) => isLike(folder, last)) : [],
    };
    if (found.people.length || found.years.length || found.folders.length)
      return { ...found, without, before: words.slice(0, from).join(" ") };
  }
  return { people: [], years: [], folders: [], without: false, before: text };
}
