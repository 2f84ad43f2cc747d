import { useEffect, useState } from 'preact/hooks';

const STORED = 'dawatch.times';
const changes = new EventTarget();

function areAbsolute() {
  return localStorage.getItem(STORED) === 'absolute';
}

/**
 * Returns whether all times are shown as absolute times. The choice is stored in the browser.
 * @returns {boolean}
 */
export function useAbsoluteTimes() {
  const [isAbsolute, setIsAbsolute] = useState(areAbsolute);
  useEffect(() => {
    const change = () => setIsAbsolute(areAbsolute());
    changes.addEventListener('change', change);
    return () => changes.removeEventListener('change', change);
  }, []);
  return isAbsolute;
}

/** Switches between relative and absolute times. */
export function switchTimes() {
  localStorage.setItem(STORED, areAbsolute() ? 'relative' : 'absolute');
  changes.dispatchEvent(new Event('change'));
}
