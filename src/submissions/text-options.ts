import { z } from 'zod';

/**
 * The options of a submission that are stored and returned as text. Each is a column of this name:
 * a request sets it, PATCH changes it or removes it with null, and the history names its changes.
 * `key`: its name in Submission. `patch`, `returned`: what it means there.
 */
export const TEXT_OPTIONS = [
  {
    name: 'data_hash',
    key: 'dataHash',
    schema: z
      .string()
      .regex(
        /^0x[0-9a-f]{64}$/i,
        'must be 0x and 64 hexadecimal digits: the BLAKE2b-256 hash of the data',
      )
      .toLowerCase()
      .describe(
        'BLAKE2b-256 hash of the submitted data, 0x and 64 hexadecimal digits in any case. If the upstream reports another one, the submission is contradicted. Where the upstream encrypts, the hash of the encrypted data',
      ),
    patch: 'BLAKE2b-256 hash of the submitted data; null: none is required',
    returned: 'BLAKE2b-256 hash that `data.data_hash` must equal; null: none is required',
  },
] as const;

type TextOption = (typeof TEXT_OPTIONS)[number];
type TextName = TextOption['name'];
type TextKey = TextOption['key'];

/** The text options of a submission. */
export type TextFields = Record<TextKey, string | null>;

/** Returns a value for each text option, by its name in requests and responses. */
export function byName<Value>(value: (option: TextOption) => Value): Record<TextName, Value> {
  const entries = TEXT_OPTIONS.map((option) => [option.name, value(option)]);
  return Object.fromEntries(entries) as Record<TextName, Value>;
}

/** Returns a value for each text option, by its name in Submission. */
export function byKey<Value>(value: (option: TextOption) => Value): Record<TextKey, Value> {
  const entries = TEXT_OPTIONS.map((option) => [option.key, value(option)]);
  return Object.fromEntries(entries) as Record<TextKey, Value>;
}

/** Returns the text options that have a value, by their names in Submission. */
export function textsWith(
  value: (option: TextOption) => string | null | undefined,
): Partial<TextFields> {
  const entries = TEXT_OPTIONS.map((option) => [option.key, value(option)]);
  return Object.fromEntries(entries.filter(([, text]) => text !== undefined));
}

/** Returns the text options of a request; those that it does not name are null. */
export function textsOf(request: Partial<TextFields>): TextFields {
  return byKey(({ key }) => request[key] ?? null);
}
