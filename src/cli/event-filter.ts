import { InvalidArgumentError } from 'commander';
import type { MetadataFilter } from '../client/index.ts';

/** Collects repeated `--type` options with comma-separated values. */
export function collectTypes(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',')];
}

/**
 * Collects repeated `--metadata name=value` options. A value that is a JSON number, true, false,
 * null or a quoted string has that type; any other value is text.
 */
export function collectMetadata(text: string, before?: MetadataFilter | false): MetadataFilter {
  const [name, value] = [
    text.slice(0, Math.max(0, text.indexOf('='))),
    text.slice(text.indexOf('=') + 1),
  ];
  // JSON.parse on the server drops __proto__, so that the filter would be lost.
  if (name === '' || name === '__proto__')
    throw new InvalidArgumentError('Expected name=value, like team=billing.');
  if (before && Object.hasOwn(before, name))
    throw new InvalidArgumentError(`${JSON.stringify(name)} is given twice.`);
  return Object.fromEntries([...Object.entries(before || {}), [name, toValue(value)]]);
}

function toValue(text: string): string | number | boolean | null {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    // 1e999 and integers beyond the safe range would change their value, so they stay text.
    if (
      typeof value === 'number' &&
      Number.isFinite(value) &&
      (!Number.isInteger(value) || Number.isSafeInteger(value))
    )
      return value;
  } catch {}
  return text;
}
