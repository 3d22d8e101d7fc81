// The files of uploaded faces, kept by this browser: the server remembers a face for half an hour and forgets it when it is
// started again; the page then sends the file again.

import { api } from "./api.js";

const MOST = 24; // files that are kept; the oldest go first

let opened = null;
function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("setnet", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("uploads", { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function store(mode, act) {
  const db = await database();
  return new Promise((resolve, reject) => {
    const transaction = db.transaction("uploads", mode);
    const request = act(transaction.objectStore("uploads"));
    transaction.oncomplete = () => resolve(request?.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

// Keeps a file with the ids that the server gave its faces; returns its key, or null where the browser keeps nothing.
export async function keepUpload(file, faces) {
  const key = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
  try {
    await store("readwrite", (all) =>
      all.put({ key, file: new Blob([file], { type: file.type }), faces, at: Date.now() }),
    );
    const kept = await store("readonly", (all) => all.getAll());
    const old = kept.sort((a, b) => b.at - a.at).slice(MOST);
    if (old.length)
      await store("readwrite", (all) => {
        for (const { key: gone } of old) all.delete(gone);
      });
    return key;
  } catch {
    return null;
  }
}

// The id by which the server may still know the face of a kept file; null when the file is not kept any more.
export async function knownFace(key, face) {
  try {
    return (await store("readonly", (all) => all.get(key)))?.faces[face] ?? null;
  } catch {
    return null;
  }
}

// Sends the files of all examples again and gives the examples their new ids; false when there is nothing to send.
export async function sendAgain(examples) {
  const keys = [...new Set(examples.map((example) => example.upload).filter(Boolean))];
  for (const key of keys) {
    const record = await store("readonly", (all) => all.get(key));
    if (!record) continue;
    const { faces } = await api.faces(record.file);
    record.faces = faces.map((face) => face.id);
    await store("readwrite", (all) => all.put(record));
    for (const example of examples)
      if (example.upload === key && record.faces[example.face]) example.id = record.faces[example.face];
  }
  return keys.length > 0;
}

// Makes a call that refers to uploads; when the server does not know them any more, sends them and calls once more.
export async function withUploads(examples, call) {
  try {
    return await call();
  } catch (error) {
    if (error.status !== 404 || !(await sendAgain(examples))) throw error;
    return call();
  }
}

export async function forgetUploads() {
  try {
    await store("readwrite", (all) => all.clear());
  } catch {
    /* nothing was kept */
  }
}
