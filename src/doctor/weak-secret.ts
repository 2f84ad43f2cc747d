/** Parts of chosen keys that the look for words below misses. */
const COMMON = ['changeme', 'p@ssw0rd', 'p@ssword', 'passw0rd', 'qwerty', 'qwertz', 'asdfgh', 'zxcvbn', 'dawatch'];
const OWN_PREFIX = /^dawatch_(?:service|user|admin)_/;

/** Estimated; a key of `dawatch token create` has 256. */
const MIN_BITS = 75;
/** The choice of one common word. */
const BITS_PER_WORD = 11;

/** A short random text shows fewer different characters than it was made from: bits that each of its characters is worth more. */
const UNSEEN_BITS = 0.8;
/** With fewer different ones it was not made from many. */
const MIN_DISTINCT = 8;

/**
 * Why a key does not look random, without a part of it; undefined: it does. An estimate: words are worth a choice each, and
 * every other character the logarithm of how many different ones there are, if it continues no repetition or sequence.
 */
export function weaknessOf(secret: string): string | undefined {
  const text = secret.replace(OWN_PREFIX, '');
  const { words, rest } = takeWords(firstPeriodOf(text));
  const random = withoutSequences(rest);
  const distinct = new Set(random).size;
  const bitsPerCharacter = Math.log2(distinct || 1) + (distinct >= MIN_DISTINCT ? UNSEEN_BITS : 0);
  const bits = words * BITS_PER_WORD + random.length * bitsPerCharacter;
  if (bits >= MIN_BITS) return undefined;
  if (words > 0) return 'it is made of words';
  return random.length < text.length
    ? 'it repeats characters or a sequence'
    : 'it is too short or has few different characters';
}

/** All of "abcabcab" is known from "abc". */
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

/** As words are, and long random letters hardly ever. */
function isPronounceable(letters: string): boolean {
  const vowels = letters.match(/[aeiouy]/gi)?.length ?? 0;
  return vowels / letters.length >= 0.25 && !/[^aeiouy]{4}/i.test(letters);
}

/** Without what follows from the two characters before it: aaa, 123, fed. */
function withoutSequences(text: string): string {
  const step = (at: number) => text.charCodeAt(at) - text.charCodeAt(at - 1);
  return [...text].filter((_, at) => at < 2 || Math.abs(step(at)) > 1 || step(at) !== step(at - 1)).join('');
}
