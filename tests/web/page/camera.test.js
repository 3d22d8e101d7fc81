// How a photo was taken, in words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fileSize, inWords } from "../../../src/setnet/web/static/js/viewer/camera.js";

const none = {
  camera: null,
  lens: null,
  exposure: null,
  aperture: null,
  iso: null,
  focal_length: null,
  latitude: null,
  longitude: null,
};

test("a camera's settings are written as photographers do, and what is not known is left out", () => {
  const facts = { ...none, camera: "Canon EOS 80D", exposure: 0.004, aperture: 2.8, iso: 1600, focal_length: 50 };
  assert.deepEqual(inWords(facts), ["Canon EOS 80D", "1/250 s · f/2.8 · ISO 1600 · 50 mm"]);
  assert.deepEqual(inWords({ ...none, lens: "50mm", exposure: 2 }), ["50mm", "2 s"]);
  assert.deepEqual(inWords({ ...none, latitude: -33.5, longitude: 0 }), ["33.50000° S, 0.00000° E"]);
  assert.deepEqual(inWords(none), []);
});

test("a small file is not said to be empty", () => {
  assert.deepEqual([fileSize(45_100), fileSize(3_240_000)], ["46 kB", "3.2 MB"]);
});
