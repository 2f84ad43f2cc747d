import type { z } from 'zod';

const MAX_SHOWN_CHARS = 40;
const MAX_NAMES = 5;

const NOUNS: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

/** For schemas without messages. Quotes only short or listed values: they may be secret. */
export const explainIssue: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return typeReason(issue.expected, issue.input);
    case 'too_small':
      if (issue.minimum === 1 && (issue.origin === 'string' || issue.origin === 'array'))
        return 'must not be empty';
      return `must ${sizeOf(issue.origin, `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`)}`;
    case 'too_big':
      return `must ${sizeOf(issue.origin, `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`)}`;
    case 'invalid_value':
      return `must be ${choiceOf(issue.values)}${shownOf(issue.input)}`;
    case 'invalid_format':
      return issue.format === 'datetime'
        ? 'must be a time with its zone, like 2026-01-02T03:04:05Z'
        : 'has an invalid format';
    case 'unrecognized_keys':
      return `there is no field ${namesOf(issue.keys)}`;
    case 'invalid_key':
      return 'has a name that is not allowed';
    case 'invalid_union':
    case 'invalid_element':
      return 'has a value that is not allowed';
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    default:
      return 'is not valid';
  }
};

/** Empty if the value is long, or neither a string nor a number. */
export function shownOf(input: unknown): string {
  if (typeof input === 'number') return `, not ${input}`;
  return typeof input === 'string' && input.length <= MAX_SHOWN_CHARS
    ? `, not ${JSON.stringify(input)}`
    : '';
}

/** Returns the message for a value of a type that is not allowed; undefined is a missing value. */
export function typeReason(expected: string, input: unknown): string {
  const noun = NOUNS[expected] ?? 'of another kind';
  return input === undefined
    ? `is missing: it must be ${noun}`
    : `must be ${noun}, not ${nounOf(input)}`;
}

function nounOf(input: unknown): string {
  if (input === null) return 'null';
  if (Array.isArray(input)) return 'a list';
  if (typeof input === 'number' && !Number.isInteger(input)) return 'this number';
  return NOUNS[typeof input] ?? 'this';
}

function sizeOf(origin: string, count: string): string {
  switch (origin) {
    case 'string':
      return `have ${count} characters`;
    case 'array':
    case 'set':
      return `have ${count} entries`;
    default:
      return `be ${count}`;
  }
}

function choiceOf(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  return texts.length === 1 ? `${texts[0]}` : `one of ${texts.join(', ')}`;
}

function namesOf(names: readonly string[]): string {
  const listed = names
    .slice(0, MAX_NAMES)
    .map((name) => JSON.stringify(name.slice(0, MAX_SHOWN_CHARS)));
  return names.length > MAX_NAMES
    ? `${listed.join(', ')} and ${names.length - MAX_NAMES} more`
    : listed.join(', ');
}
