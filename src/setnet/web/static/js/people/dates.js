// Dates of photos in words: months for headings, a span of years for groups.

const MONTH = new Intl.DateTimeFormat([], { month: "long", year: "numeric", timeZone: "UTC" });
const SHORT = new Intl.DateTimeFormat([], { month: "short", year: "numeric", timeZone: "UTC" });

// "2016-07-14T18:30:00" is the camera's own time, of whatever zone: it is not shifted.
const monthIn = (taken) => (taken ? taken.slice(0, 7) : null);
const dateOf = (month) => new Date(`${month}-01T00:00:00Z`);

// `month` is "2016-07", or null where it is not known.
export const monthName = (month) => (month ? MONTH.format(dateOf(month)) : "Date unknown");
export const shortMonth = (month) => (month ? SHORT.format(dateOf(month)) : "No date");

// Photos that are sorted by date as groups of a gallery, one per month.
export function byMonth(hits) {
  const months = new Map();
  for (const hit of hits) {
    const month = monthIn(hit.photo.taken);
    if (!months.has(month)) months.set(month, []);
    months.get(month).push(hit);
  }
  return [...months].map(([month, those]) => ({
    title: shortMonth(month),
    name: monthName(month),
    note: "",
    hits: those,
  }));
}

export function span(first, last) {
  if (!first || !last) return "";
  const [from, to] = [first.slice(0, 4), last.slice(0, 4)];
  return from === to ? from : `${from} to ${to}`;
}
