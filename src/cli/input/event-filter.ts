import { InvalidArgumentError } from 'commander';
import type { MetadataFilter } from '../../client/index.ts';

/** Several `--type`, each a list with commas. */
export function collectTypes(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',')];
}

/**
 * Several `--metadata name=value`. A value is what it says if it is exactly a JSON number, true, false, null or a string in
 * quotes; anything else is that text.
 */
export function collectMetadata(text: string, before?: MetadataFilter | false): MetadataFilter {
  const [name, value] = [text.slice(0, Math.max(0, text.indexOf('='))), text.slice(text.indexOf('=') + 1)];
  // JSON can't carry that name: it would be no filter at all.
  if (name === '' || name === '__proto__') throw new InvalidArgumentError('Expected name=value, like team=billing.');
  if (before && Object.hasOwn(before, name)) throw new InvalidArgumentError(`${JSON.stringify(name)} is given twice.`);
  return Object.fromEntries([...Object.entries(before || {}), [name, toValue(value)]]);
}

function toValue(text: string): string | number | boolean | null {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    // A number that would be written otherwise ("007" is none, 1e999 and long ones change) is not what it says.
    if (
      typeof value === 'number' &&
      Number.isFinite(value) &&
      (!Number.isInteger(value) || Number.isSafeInteger(value))
    )
      return value;
  } catch {}
  return text;
}
