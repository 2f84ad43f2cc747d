import { useEffect, useState } from 'preact/hooks';

const STORED = 'dawatch.times';
const changes = new EventTarget();

function areAbsolute() {
  return localStorage.getItem(STORED) === 'absolute';
}

/** Whether all times are shown as absolute ones, which this browser remembers. @returns {boolean} */
export function useAbsoluteTimes() {
  const [isAbsolute, setIsAbsolute] = useState(areAbsolute);
  useEffect(() => {
    const change = () => setIsAbsolute(areAbsolute());
    changes.addEventListener('change', change);
    return () => changes.removeEventListener('change', change);
  }, []);
  return isAbsolute;
}

/** Shows relative times as absolute ones, or the reverse. */
export function switchTimes() {
  localStorage.setItem(STORED, areAbsolute() ? 'relative' : 'absolute');
  changes.dispatchEvent(new Event('change'));
}
