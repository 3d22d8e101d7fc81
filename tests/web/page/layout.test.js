// Where photos are put: rows fill the width, nothing is lost or comes twice, whatever the shapes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { between, justified, layOut, ratio } from "../../../src/setnet/web/static/js/gallery/layout.js";

const GAP = 6;
const WIDTH = 1000;

// Numbers from 0 to 1 that are the same in every run.
function chances(seed) {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

function photos(count, seed) {
  const next = chances(seed);
  return Array.from({ length: count }, (_, id) => ({
    photo: { id, width: 1 + 4000 * next(), height: 1 + 4000 * next() },
  }));
}

test("rows fill the width, keep the order and hold every photo once", () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const items = photos(seed, seed).map((hit) => hit.photo);
    const rows = justified(items, WIDTH, 200, GAP, ratio);
    assert.deepEqual(
      rows.flatMap((row) => row.items),
      items,
    );
    for (const row of rows.slice(0, -1)) {
      const width = row.items.reduce((sum, photo) => sum + ratio(photo) * row.height, GAP * (row.items.length - 1));
      assert.ok(Math.abs(width - WIDTH) < 1e-6);
    }
    assert.ok(rows.at(-1).height <= 200);
  }
});

test("groups follow each other without overlap, and `between` finds what a span shows", () => {
  const groups = [7, 1, 30].map((count, seed) => ({ title: `group ${seed}`, hits: photos(count, seed + 1) }));
  const { sections, height } = layOut(groups, { width: WIDTH, target: 200, gap: GAP, flow: false });
  assert.equal(sections.length, 3);
  for (const [number, section] of sections.entries()) {
    assert.equal(section.top, number ? sections[number - 1].bottom + 8 : 0);
    assert.equal(section.rows.flatMap((row) => row.items).length, groups[number].hits.length);
  }
  assert.equal(height, sections.at(-1).bottom + 8);
  for (let from = -500; from < height + 500; from += 97) {
    const found = sections.filter((section) => section.bottom >= from && section.top <= from + 300);
    assert.deepEqual(between(sections, from, from + 300), found);
  }
});

test("months flow in the same rows, each with a label where it begins", () => {
  const months = [3, 2, 40].map((count, seed) => ({
    title: `m${seed}`,
    name: `Month ${seed}`,
    hits: photos(count, seed),
  }));
  const [section] = layOut(months, { width: WIDTH, target: 200, gap: GAP, flow: true }).sections;
  assert.deepEqual(
    section.rows.flatMap((row) => row.labels ?? []).map((label) => label.title),
    ["m0", "m1", "m2"],
  );
});

test("photos that are not loaded yet have a place", () => {
  const { sections } = layOut([{ title: "", hits: new Array(5) }], {
    width: WIDTH,
    target: 200,
    gap: GAP,
    flow: false,
  });
  assert.equal(sections[0].rows.flatMap((row) => row.items).length, 5);
});
