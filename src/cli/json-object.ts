import { InvalidArgumentError } from 'commander';
import { DEEP_METADATA_REASON, isTooDeep } from '../lib/json.ts';

/** Parses a JSON object for use as metadata. */
export function parseObject(text: string): Record<string, unknown> {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidArgumentError('Expected a JSON object.');
  if (isTooDeep(value)) throw new InvalidArgumentError(`${DEEP_METADATA_REASON}.`);
  return { ...value };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
