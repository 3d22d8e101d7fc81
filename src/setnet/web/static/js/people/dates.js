// Dates of photos in words: a month for headings, a span of years for groups.

const MONTH = new Intl.DateTimeFormat([], { month: "long", year: "numeric", timeZone: "UTC" });

// "2016-07-14T18:30:00" is the camera's own time, of whatever zone: it is not shifted.
const dayOf = (taken) => new Date(`${taken.slice(0, 10)}T00:00:00Z`);

export const monthOf = (taken) => (taken ? MONTH.format(dayOf(taken)) : "Date unknown");

export function span(first, last) {
  if (!first || !last) return "";
  const [from, to] = [first.slice(0, 4), last.slice(0, 4)];
  return from === to ? from : `${from} to ${to}`;
}
