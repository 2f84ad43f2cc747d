import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { refreshAll } from '../data/use-load.js';
import { switchTimes } from '../parts/times.js';
import { hrefTo } from '../router.js';

/** Maximum time between two keys of a sequence. */
const SEQUENCE_MS = 1_500;
const STORED = 'dawatch.shortcuts';
const NOT_HERE =
  'input:not([type="checkbox"], [type="radio"]), textarea, select, [contenteditable]';
const ROW = 'main tbody tr:has(> th[scope="row"])';
const TARGET = ':is(a, button)';

/**
 * @typedef {{ keys: string, title: string, run?: () => void }} Shortcut `keys`: pressed one after
 * another; without `run`, the browser acts
 */

/**
 * Every shortcut of the dashboard.
 * @param {readonly [name: string, page: { title: string, key: string }][]} pages those of this session
 * @param {() => void} showList
 * @returns {readonly Shortcut[]}
 */
export function shortcutsOf(pages, showList) {
  return [
    { keys: '?', title: 'Show this list', run: showList },
    ...(pages.some(([name]) => name === 'submissions')
      ? [{ keys: '/', title: 'Search', run: search }]
      : []),
    { keys: 'r', title: 'Refresh the page', run: refreshAll },
    { keys: 't', title: 'Absolute or relative times', run: switchTimes },
    { keys: 'j', title: 'Next row', run: () => moveToRow(1) },
    { keys: 'k', title: 'Previous row', run: () => moveToRow(-1) },
    { keys: 'Enter', title: 'Open the row' },
    ...pages.map(([name, { title, key }]) => {
      return {
        keys: `g ${key}`,
        title: `Go to ${title}`,
        run: () => location.assign(hrefTo(name)),
      };
    }),
  ];
}

/**
 * Runs shortcuts when their keys are pressed, except in fields, in dialogs, and with modifiers.
 * @param {readonly Shortcut[]} shortcuts @param {boolean} isOn
 */
export function useShortcuts(shortcuts, isOn) {
  const newest = useRef(shortcuts);
  newest.current = shortcuts;
  useLayoutEffect(() => {
    if (!isOn) return undefined;
    let previous = { key: '', at: 0 };
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (isForPage(event)) return;
      // Caps Lock changes the key to a capital letter.
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      const isSequence = previous.key !== '' && event.timeStamp - previous.at < SEQUENCE_MS;
      const keys = isSequence ? `${previous.key} ${key}` : key;
      const run = newest.current.find((shortcut) => shortcut.keys === keys)?.run;
      const isFirst =
        !isSequence && newest.current.some((shortcut) => shortcut.keys.startsWith(`${key} `));
      previous = { key: isFirst ? key : '', at: event.timeStamp };
      if (!run) return;
      event.preventDefault();
      run();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [isOn]);
}

/**
 * Whether shortcuts are on. The choice is stored in the browser. @returns {[boolean, (isOn:
 * boolean) => void]}
 */
export function useShortcutSetting() {
  const [isOn, setIsOn] = useState(() => localStorage.getItem(STORED) !== 'off');
  const change = (/** @type {boolean} */ wanted) => {
    localStorage.setItem(STORED, wanted ? 'on' : 'off');
    setIsOn(wanted);
  };
  return [isOn, change];
}

/** @param {KeyboardEvent} event */
function isForPage(event) {
  const { target, key, defaultPrevented, ctrlKey, altKey, metaKey, shiftKey, isComposing } = event;
  if (defaultPrevented || ctrlKey || altKey || metaKey || isComposing || key === 'Shift')
    return true;
  if (shiftKey && /^[a-z]$/i.test(key)) return true;
  return (
    (target instanceof Element && target.closest(NOT_HERE) !== null) ||
    document.querySelector('dialog[open]') !== null
  );
}

/** Whether the next page is opened for its search field. */
let isSearching = false;

/** Moves the focus to the search field of the page, or opens the list of submissions for it. */
function search() {
  const field = searchFieldIn(document);
  if (field) return field.select();
  isSearching = true;
  location.assign(hrefTo('submissions'));
}

/**
 * Returns the element of a new page that gets the focus: its title, or its search field after `/`.
 * @param {ParentNode} page
 */
export function firstFocus(page) {
  const field = isSearching ? searchFieldIn(page) : null;
  isSearching = false;
  return field ?? page.querySelector('h1');
}

/** @param {ParentNode} page @returns {HTMLInputElement | null} */
function searchFieldIn(page) {
  return page.querySelector('input[type="search"]');
}

/**
 * Moves the focus to another row: to the link in its first cell, or else to its first link or
 * button. @param {1 | -1} step
 */
function moveToRow(step) {
  const rows = [...document.querySelectorAll(ROW)].flatMap((row) => {
    const target = row.querySelector(`th ${TARGET}`) ?? row.querySelector(TARGET);
    return target instanceof HTMLElement ? [{ row, target }] : [];
  });
  const now = rows.findIndex(({ row }) => row.contains(document.activeElement));
  const next = now < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, now + step));
  rows[next]?.target.focus();
}
