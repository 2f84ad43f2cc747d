import { parseStored } from '../lib/stored.ts';

/** The longest text of a search. */
export const MAX_SEARCH_CHARS = 128;

/**
 * Returns a function that returns whether an id, or a value of the metadata at any depth, contains
 * the text in upper or lower case. `metadata`: as stored. Compares in upper case, because the lower
 * case of a letter can depend on its neighbors.
 */
export function textMatcher(
  text: string,
): (submissionId: string, metadata: string | null) => boolean {
  const wanted = text.toUpperCase();
  // A value that contains the text contains it in JSON, too, so most metadata need not be parsed.
  const wantedInJson = JSON.stringify(text).slice(1, -1).toUpperCase();
  const contains = (value: unknown): boolean => {
    if (typeof value === 'object' && value !== null) return Object.values(value).some(contains);
    return (typeof value === 'string' ? value : JSON.stringify(value))
      .toUpperCase()
      .includes(wanted);
  };
  const isInMetadata = (json: string) =>
    json.toUpperCase().includes(wantedInJson) &&
    contains(parseStored(json, 'a submission', 'metadata'));
  return (submissionId, metadata) =>
    submissionId.toUpperCase().includes(wanted) || (metadata !== null && isInMetadata(metadata));
}
