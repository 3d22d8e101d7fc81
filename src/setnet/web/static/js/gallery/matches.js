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

const listed = (names) =>
  names.length > 3
    ? `${names.slice(0, 2).join(", ")} and ${names.length - 2} others`
    : new Intl.ListFormat("en", { type: "conjunction" }).format(names);

// Who is not in a photo that has only some of the people; or who is, where that is shorter.
export function missing(hit, names) {
  const there = new Set(hit.matches.map((match) => match.person));
  const [here, gone] = [
    names.filter((_, number) => there.has(number)),
    names.filter((_, number) => !there.has(number)),
  ];
  return gone.length <= here.length ? `without ${listed(gone)}` : here.length ? `only ${listed(here)}` : "";
}

// Hits by how many of the people are in them, those in which all matches are sure before the others.
export function inGroups(hits, names) {
  const groups = [];
  for (let count = names.length; count > 0; count -= 1) {
    const those = hits.filter((hit) => hit.matches.length === count);
    const title =
      names.length === 1 ? `With ${names[0]}` : count === names.length ? `All ${count}` : `${count} of ${names.length}`;
    for (const sure of [true, false]) {
      const part = those.filter((hit) => isSure(hit) === sure);
      if (part.length)
        groups.push({
          title: sure ? title : `Maybe ${title[0].toLowerCase()}${title.slice(1)}`,
          count,
          sure,
          hits: part,
          caption: count < names.length ? (hit) => missing(hit, names) : null,
        });
    }
  }
  const rest = hits.filter((hit) => !hit.matches.length);
  return rest.length ? [...groups, { title: "Nobody confirmed", count: 0, sure: true, hits: rest }] : groups;
}
