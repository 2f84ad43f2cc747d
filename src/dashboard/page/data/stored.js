import { useState } from 'preact/hooks';

/**
 * A value that the browser keeps. @template T @param {string} name @param {T} initial @returns {[T,
 * (value: T) => void]}
 */
export function useStored(name, initial) {
  const key = `dawatch.${name}`;
  const [value, setValue] = useState(() => {
    try {
      return JSON.parse(localStorage.getItem(key) ?? 'null') ?? initial;
    } catch {
      return initial;
    }
  });
  const store = (/** @type {T} */ changed) => {
    localStorage.setItem(key, JSON.stringify(changed));
    setValue(changed);
  };
  return [value, store];
}
