import { useEffect, useRef, useState } from 'preact/hooks';

const EVERY_MS = 1_000;
/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {number | undefined} */
let timer;

function tick() {
  if (document.hidden) return;
  for (const listener of listeners) listener();
}

/**
 * Calls the listener every second while the page is visible. All listeners share one timer. @param
 * {() => void} listener @returns {() => void} removes the listener
 */
function onTick(listener) {
  if (listeners.size === 0) {
    timer = setInterval(tick, EVERY_MS);
    document.addEventListener('visibilitychange', tick);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    document.removeEventListener('visibilitychange', tick);
  };
}

/**
 * Returns the text for the current time, and renders again when it changes. @param {(now: number)
 * => string} textAt
 */
export function useTicking(textAt) {
  const text = textAt(Date.now());
  const [, setShown] = useState(text);
  const newest = useRef(textAt);
  newest.current = textAt;
  useEffect(() => onTick(() => setShown(newest.current(Date.now()))), []);
  return text;
}
