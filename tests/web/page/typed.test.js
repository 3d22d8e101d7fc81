// What is typed into the search field, and how answers are called.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { inGroups, nobodyWith, withWhom } from "../../../src/setnet/web/static/js/gallery/matches.js";
import { saved } from "../../../src/setnet/web/static/js/saved_people.js";
import { completions, understand } from "../../../src/setnet/web/static/js/search/typed.js";

const FOLDERS = ["/photos/Beach", "/photos/2019 Rome"];
const names = (found) => found.people.map(({ person, without }) => (without ? "-" : "") + person.name);

beforeEach(() => {
  const people = ["Anna", "Anna Maria Lopez", "Ben", "Carl", "Zoë"];
  saved.people = people.map((name) => ({ id: name, name, aliases: name === "Ben" ? ["Benny"] : [], photos: 1 }));
});

test("one line names people, who must not be there, a year and a folder", () => {
  const found = understand("anna Benny -carl 2019 beach", FOLDERS);
  assert.deepEqual(names(found), ["Anna", "Ben", "-Carl"]);
  assert.equal(found.year, "2019");
  assert.equal(found.folder, "/photos/Beach");
  assert.deepEqual(found.rest, []);
});

test("the longest name is meant, and the beginning of only one is enough", () => {
  assert.deepEqual(names(understand("Anna Maria Lopez Ben", FOLDERS)), ["Anna Maria Lopez", "Ben"]);
  assert.deepEqual(names(understand("zo -lopez", FOLDERS)), ["Zoë", "-Anna Maria Lopez"]);
  assert.deepEqual(understand("an nobody -", FOLDERS).rest, ["an", "nobody", "-"]);
  assert.deepEqual(understand("  ", FOLDERS), { people: [], year: null, folder: null, rest: [] });
});

test("the last words are completed, what stands before them stays", () => {
  const all = { years: ["2019", "2020", "2016"], folders: FOLDERS };
  const found = completions("Ben -ann", all);
  assert.deepEqual(
    found.people.map((person) => person.name),
    ["Anna", "Anna Maria Lopez"],
  );
  assert.equal(found.without, true);
  assert.equal(found.before, "Ben");
  assert.deepEqual(completions("201", all).years, ["2019", "2016"]);
  assert.deepEqual(completions("be", all).folders, ["/photos/Beach"]);
  assert.deepEqual(completions("nobody", all).people, []);
});

test("answers are called by who is in them", () => {
  assert.equal(withWhom(2, ["Anna", "Ben"]), "with Anna and Ben");
  assert.equal(withWhom(1, ["Anna", "Ben"]), "with only one of them");
  assert.equal(withWhom(2, ["Anna", "Ben", "Carl"]), "with two of them");
  assert.equal(nobodyWith(["Anna"]), "No photo has Anna");
  assert.equal(nobodyWith(["Anna", "Ben"]), "No photo has both Anna and Ben");
  assert.equal(nobodyWith(["Anna", "Ben", "Carl"]), "No photo has all three");
});

test("photos with only some of the people are folded, and split by who is there", () => {
  const hit = (...people) => ({ photo: {}, matches: people.map((person) => ({ person, sure: true })) });
  const hits = [hit(0, 1), hit(1), hit(0), hit(1)];
  const titles = (open) =>
    inGroups(hits, ["Anna", "Ben"], {
      isOpen: (count) => open.includes(count),
      isNewest: false,
      hasMore: () => false,
    }).map((group) => [group.title, group.hits.length]);
  assert.deepEqual(titles([2]), [
    ["with Anna and Ben", 1],
    ["with only one of them", 0],
  ]);
  assert.deepEqual(titles([2, 1]), [
    ["with Anna and Ben", 1],
    ["with only one of them", 0],
    ["Only Ben", 2],
    ["Only Anna", 1],
  ]);
});
