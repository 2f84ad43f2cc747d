import { fromLocalTime, toLocalTime } from '../parts/form.js';
import { text } from '../parts/format.js';
import { isShownAs } from './filters.js';

/**
 * The options of a submission as the texts of a form.
 * @typedef {'deadline' | 'unknown_grace_s' | 'stuck_after_s' | 'metadata' | 'callback_url'} Name
 * @typedef {Record<Name, string>} Texts
 * @typedef {Partial<Record<Name, string>>} Errors
 */

/** @type {readonly Name[]} */
export const OPTIONS = ['deadline', 'unknown_grace_s', 'stuck_after_s', 'metadata', 'callback_url'];
/** The options that can still be changed after a submission has ended. @type {readonly Name[]} */
export const ALWAYS = ['metadata', 'callback_url'];

/** @param {any} one a submission @returns {Texts} */
export function textsOf(one) {
  return {
    deadline: toLocalTime(one.deadline_at),
    unknown_grace_s: String(one.unknown_grace_s),
    stuck_after_s: String(one.stuck_after_s),
    metadata: one.metadata === null ? '' : JSON.stringify(one.metadata, null, 2),
    callback_url: one.callback_url ?? '',
  };
}

/**
 * Whether a field has another value than before. @param {Name} name @param {string} before @param
 * {string} now
 */
export function isChanged(name, before, now) {
  return before !== now && !(name === 'deadline' && isShownAs(fromLocalTime(before), now));
}

/**
 * Returns the body of a PATCH with the changed options, and the errors of the options that cannot
 * be sent.
 * @param {Texts} texts @param {readonly Name[]} changed @returns {{ body: Record<string, unknown>, errors: Errors }}
 */
export function toPatch(texts, changed) {
  /** @type {Record<string, unknown>} */
  const body = {};
  /** @type {Errors} */
  const errors = {};
  for (const name of changed) {
    try {
      body[name] = READERS[name](texts[name].trim());
    } catch (error) {
      errors[name] = error instanceof Error ? error.message : text(error);
    }
  }
  return { body, errors };
}

/** @type {Record<Name, (text: string) => unknown>} */
const READERS = {
  deadline: (text) => (text === '' ? wrong('Enter a time.') : fromLocalTime(text)),
  unknown_grace_s: seconds,
  stuck_after_s: seconds,
  metadata: (text) => (text === '' ? null : object(text)),
  callback_url: (text) => (text === '' ? null : text),
};

/** @param {string} text */
function seconds(text) {
  return text === '' || Number.isNaN(Number(text))
    ? wrong('Enter a number of seconds.')
    : Number(text);
}

/** @param {string} text */
function object(text) {
  const value = parsed(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : wrong('Enter an object, such as {"order": 4711}, or nothing.');
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    return wrong(`This is not valid JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

/** @param {string} reason @returns {never} */
function wrong(reason) {
  throw new Error(reason);
}
