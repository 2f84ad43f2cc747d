import { useEffect, useState } from 'preact/hooks';

const changes = new EventTarget();

/** A choice, which the browser stores. @param {string} name @param {string} initial */
export function usePreference(name, initial) {
  const read = () => localStorage.getItem(`dawatch.${name}`) ?? initial;
  const [value, setValue] = useState(read);
  useEffect(() => {
    const change = () => setValue(read());
    changes.addEventListener('change', change);
    return () => changes.removeEventListener('change', change);
  }, []);
  return value;
}

export function setPreference(name, value) {
  localStorage.setItem(`dawatch.${name}`, value);
  changes.dispatchEvent(new Event('change'));
}
