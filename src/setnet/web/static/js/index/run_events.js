// The index run as it goes, one stream for all views.

import { api } from "../api.js";

const RUNNING = new Set(["running", "stopping"]);
export const isRunning = (job) => RUNNING.has(job?.state);

export const isGrouping = (job) => Boolean(job?.progress?.stage?.startsWith("grouping"));

const listeners = new Set();
let reconnected = () => {};
let isLost = false;
let stream = null;
let was = false;

// listener(job, hasEnded)
export function watchRun(listener) {
  listeners.add(listener);
}

// listener(): the server answers again.
export function onReconnect(listener) {
  reconnected = listener;
}

export function listenToRuns() {
  if (stream && stream.readyState !== EventSource.CLOSED) return;
  stream = api.indexEvents();
  stream.addEventListener("error", () => {
    isLost = true;
  });
  stream.addEventListener("open", () => {
    if (isLost) reconnected();
    isLost = false;
  });
  stream.addEventListener("index", (event) => {
    const job = JSON.parse(event.data);
    const hasEnded = was && !isRunning(job);
    was = isRunning(job);
    for (const listener of listeners) listener(job, hasEnded);
  });
}

// A run may be over before the stream tells that it began: its end is expected from here on.
export function expectRun() {
  was = true;
}

export function stopListening() {
  stream?.close();
  stream = null;
}

// How long a run will go on, as far as that can be known.
export const timeLeft = (seconds) => (seconds < 10 ? "a few seconds left" : `about ${duration(seconds)} left`);

export function duration(seconds) {
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
