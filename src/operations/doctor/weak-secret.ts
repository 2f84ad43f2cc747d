/** Common parts of chosen keys that the word heuristic below does not detect. */
const COMMON = [
  'changeme',
  'p@ssw0rd',
  'p@ssword',
  'passw0rd',
  'qwerty',
  'qwertz',
  'asdfgh',
  'zxcvbn',
  'dawatch',
];
const OWN_PREFIX = /^dawatch_(?:service|user|admin)_/;

/** Minimum estimated entropy. A key of `dawatch token create` has 256 bits. */
const MIN_BITS = 75;
/** Entropy of one common word. */
const BITS_PER_WORD = 11;

/**
 * A short random text does not contain every character of its alphabet. This corrects the entropy
 * per character.
 */
const UNSEEN_BITS = 0.8;
/**
 * With fewer distinct characters the text is not considered random, and the correction does not
 * apply.
 */
const MIN_DISTINCT = 8;

/**
 * Returns why a secret does not look random, without quoting it, or undefined if it does. Estimates
 * the entropy: a fixed amount per word, and the logarithm of the number of distinct characters for
 * each other character that does not continue a repetition or a sequence.
 */
export function weaknessOf(secret: string): string | undefined {
  const text = secret.replace(OWN_PREFIX, '');
  const { words, rest } = takeWords(firstPeriodOf(text));
  const random = withoutSequences(rest);
  const distinct = new Set(random).size;
  const bitsPerCharacter = Math.log2(distinct || 1) + (distinct >= MIN_DISTINCT ? UNSEEN_BITS : 0);
  const bits = words * BITS_PER_WORD + random.length * bitsPerCharacter;
  if (bits >= MIN_BITS) return undefined;
  if (words > 0) return 'it consists of words';
  return random.length < text.length
    ? 'it contains repetitions or sequences'
    : 'it is too short or has too few distinct characters';
}

/** Returns the shortest period of a text: "abc" for "abcabcab". */
function firstPeriodOf(text: string): string {
  for (let length = 1; length <= text.length / 2; length++)
    if (text.slice(length) === text.slice(0, -length)) return text.slice(0, length);
  return text;
}

function takeWords(text: string): { words: number; rest: string } {
  let words = 0;
  const take = (isTaken: boolean, found: string) => {
    if (isTaken) words += 1;
    return isTaken ? '' : found;
  };
  const common = new RegExp(COMMON.join('|'), 'gi');
  const rest = text
    .replace(common, (found) => take(true, found))
    .replace(/[A-Za-z][a-z]{2,}|[A-Z]{3,}/g, (found) => take(isPronounceable(found), found));
  return { words, rest };
}

/** Returns whether letters have the vowels of a word, which is rare for random letters. */
function isPronounceable(letters: string): boolean {
  const vowels = letters.match(/[aeiouy]/gi)?.length ?? 0;
  return vowels / letters.length >= 0.25 && !/[^aeiouy]{4}/i.test(letters);
}

/** Removes characters that continue a sequence of the two before them: aaa, 123, fed. */
function withoutSequences(text: string): string {
  const step = (at: number) => text.charCodeAt(at) - text.charCodeAt(at - 1);
  return [...text]
    .filter((_, at) => at < 2 || Math.abs(step(at)) > 1 || step(at) !== step(at - 1))
    .join('');
}
