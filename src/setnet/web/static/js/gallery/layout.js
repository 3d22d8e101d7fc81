// Where every photo of a list is: justified rows under headings, or one flow of rows in which months have labels.
// A photo that is not loaded yet is taken to be four by three.

import { monthName, shortMonth } from "../people/dates.js";

const HEAD = 44; // the heading of a group
const LABEL = 30; // a line with the names of the months that begin in the row below

export const ratio = (photo) => (photo ? Math.min(Math.max(photo.width / photo.height, 0.4), 3.2) : 4 / 3);

// Rows of items that fill the width exactly, each about as tall as asked for; the last one may be shorter.
export function justified(items, width, target, gap, shape) {
  const made = [];
  let row = [];
  let sum = 0;
  for (const item of items) {
    row.push(item);
    sum += shape(item);
    if (sum * target + gap * (row.length - 1) >= width) {
      made.push({ items: row, height: (width - gap * (row.length - 1)) / sum });
      row = [];
      sum = 0;
    }
  }
  if (row.length) made.push({ items: row, height: Math.min(target, (width - gap * (row.length - 1)) / sum) });
  return made;
}

const shapeOf = ({ group, index }) => ratio(group.hits[index]?.photo);

function placed(row, top, gap) {
  let left = 0;
  for (const item of row.items) {
    item.left = left;
    item.width = shapeOf(item) * row.height;
    left += item.width + gap;
  }
  return { ...row, top, bottom: top + row.height };
}

const itemsOf = (group) => Array.from({ length: group.hits.length }, (_, index) => ({ group, index }));

// A row with the labels of the months that begin in it; `label(item)` is null where none does.
function labelled(row, top, gap, label) {
  const begins = row.items.some(label);
  const line = placed(row, top + (begins ? LABEL : 0), gap);
  if (begins) line.labels = row.items.filter(label).map((item) => ({ ...label(item), left: item.left }));
  return { line, next: line.bottom + gap + (begins ? 4 : 0) };
}

const monthOf = ({ group, index }) => group.hits[index]?.photo.taken?.slice(0, 7) ?? null;
const newMonth = (item) =>
  item.index === 0 || monthOf(item) !== monthOf({ ...item, index: item.index - 1 })
    ? { title: shortMonth(monthOf(item)), name: monthName(monthOf(item)) }
    : null;

// {sections: [{group, top, bottom, rows}], height}; rows have their top inside their section.
function inBlocks(groups, width, target, gap) {
  const sections = [];
  let top = 0;
  for (const group of groups) {
    let inside = group.title ? HEAD : 0;
    const rows = justified(itemsOf(group), width, target, gap, shapeOf).map((row) => {
      const { line, next } = labelled(row, inside, gap, group.byMonth ? newMonth : () => null);
      inside = next;
      return line;
    });
    sections.push({ group, top, bottom: top + inside, rows });
    top += inside + 8;
  }
  return { sections, height: top };
}

const newGroup = ({ group, index }) => (index === 0 ? { title: group.title, name: group.name } : null);

function inFlow(groups, width, target, gap) {
  let top = 0;
  const rows = justified(groups.flatMap(itemsOf), width, target, gap, shapeOf).map((row) => {
    const { line, next } = labelled(row, top, gap, newGroup);
    top = next;
    return line;
  });
  return { sections: [{ group: null, top: 0, bottom: top, rows }], height: top };
}

export const layOut = (groups, { width, target, gap, flow }) => (flow ? inFlow : inBlocks)(groups, width, target, gap);

// The part of a sorted list of {top, bottom} that overlaps a span.
export function between(list, from, to) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].bottom < from) low = middle + 1;
    else high = middle;
  }
  const found = [];
  for (let at = low; at < list.length && list[at].top <= to; at += 1) found.push(list[at]);
  return found;
}
