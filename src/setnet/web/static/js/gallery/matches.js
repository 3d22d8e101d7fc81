// Matches in words: "Anna" is sure, "Anna?" is a guess; figures are for those who ask for them.

export const called = (match) => (match.sure === false ? `${match.name}?` : match.name);
export const spoken = (match) => (match.sure === false ? `maybe ${match.name}` : match.name);
export const bandOf = (match) => (match.sure === false ? "maybe" : "sure");
export const isSure = (hit) => hit.matches.every((match) => match.sure !== false);

export const certainty = (match) => (match.sure === false ? `This may be ${match.name}` : `This is ${match.name}`);

export function figures(match) {
  if (match.similarity === undefined || match.similarity === null) return "";
  const chance =
    match.probability >= 0.9999
      ? "more than 99.99"
      : (match.probability * 100).toFixed(match.probability > 0.99 ? 2 : 0);
  return `${match.sure ? "Sure" : "A guess"}: similarity ${match.similarity.toFixed(2)}, probability ${chance} %`;
}

const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
export const inWords = (number) => COUNTS[number] ?? String(number);

export const listed = (names) => new Intl.ListFormat("en", { type: "conjunction" }).format(names);
const brief = (names) =>
  names.length > 4 ? `${listed([...names.slice(0, 3), `${names.length - 3} others`])}` : listed(names);

// How photos with so many of the people are called: "with Anna and Ben", "with only one of them".
export function withWhom(count, names) {
  if (count === names.length) return `with ${brief(names)}`;
  return `with ${count === 1 ? "only one" : inWords(count)} of them`;
}

// That no photo has all of them.
export function nobodyWith(names) {
  if (names.length === 1) return `No photo has ${names[0]}`;
  return names.length === 2 ? `No photo has both ${listed(names)}` : `No photo has all ${inWords(names.length)}`;
}

// Hits with some of the people, by who these are, the most frequent first.
function byWho(hits, names, count) {
  const parts = new Map();
  for (const hit of hits) {
    const who = names.filter((_, person) => hit.matches.some((match) => match.person === person));
    const title = `${count === 1 ? "Only " : ""}${brief(who)}`;
    if (!parts.has(title)) parts.set(title, []);
    parts.get(title).push(hit);
  }
  return [...parts]
    .sort((a, b) => b[1].length - a[1].length)
    .map(([title, those]) => ({ key: `${count} ${title}`, title, count, hits: those, isPart: true }));
}

/**
 * @typedef {{key: string, title: string, count: number, hits: any[], note?: string, sure?: boolean, isLevel?: boolean,
 *   isPart?: boolean, isFolded?: boolean, byMonth?: boolean}} Group
 */

/**
 * Hits by how many of the people are in them, those in which all matches are sure before the others. A level of photos
 * with only some of them is one heading, or is `isOpen(count)` and split by who is there. `hasMore(count)`: some are
 * not loaded yet.
 * @returns {Group[]}
 */
export function inGroups(hits, names, { isOpen, isNewest, hasMore }) {
  const groups = [];
  for (let count = names.length; count > 0; count -= 1) {
    const those = hits.filter((hit) => hit.matches.length === count);
    const level = { key: String(count), count, isLevel: true, title: withWhom(count, names), byMonth: isNewest };
    if (!those.length && !hasMore(count)) continue;
    if (count < names.length) {
      groups.push({ ...level, hits: [], isFolded: !isOpen(count) });
      if (isOpen(count)) groups.push(...byWho(those, names, count).map((part) => ({ ...part, byMonth: isNewest })));
    } else if (isNewest) groups.push({ ...level, hits: those });
    else {
      const [sure, maybe] = [those.filter(isSure), those.filter((hit) => !isSure(hit))];
      if (sure.length) groups.push({ ...level, sure: true, hits: sure });
      if (maybe.length)
        groups.push({ ...level, key: `${count} maybe`, sure: false, title: `maybe ${level.title}`, hits: maybe });
    }
  }
  const rest = hits.filter((hit) => !hit.matches.length);
  return rest.length ? [...groups, { key: "0", title: "Nobody confirmed", count: 0, hits: rest }] : groups;
}
