import { statSync } from 'node:fs';
import { isLoopback } from '../../lib/addresses.ts';
import type { LoadedConfig, Setting } from '../config/load.ts';
import { type Config, ENVIRONMENT } from '../config/schema.ts';
import { isSecret } from '../config/settings-file.ts';
import { type Finding, ok, problem, reported, settingName, warning } from './finding.ts';
import type { LedgerInspection } from './ledger.ts';

const OPEN_TO_OTHERS = 0o007;

/** Checks valid settings for gaps and risks. */
export function checkSettings(
  { config, settings, file }: LoadedConfig,
  env: Record<string, string | undefined>,
): Finding[] {
  const set = settings.filter(({ source }) => source !== 'default');
  const isInFile = ({ source }: Setting) => file !== undefined && source.startsWith(file);
  const from = [set.some(isInFile) && file, !set.every(isInFile) && 'the environment'].filter(
    Boolean,
  );
  const unusable = Object.entries(config.upstreams).filter(
    ([name, { url }]) => name !== 'default' && url === undefined,
  );
  const isWithout = Object.values(config.upstreams).every(({ url }) => url === undefined);
  const hasSecrets = set.some(({ source, path }) => source === file && isSecret(path));
  return reported(
    ok(
      'settings',
      set.length === 0 ? 'all defaults' : `${set.length} set, in ${from.join(' and ')}`,
    ),
    ...unusable.map(([name]) =>
      problem(
        'settings',
        `upstreams.${name} has no url`,
        `set upstreams.${name}.url, or remove the upstream`,
      ),
    ),
    isWithout &&
      problem(
        'settings',
        'no upstream is configured',
        'set DAWATCH_UPSTREAM_URL and DAWATCH_UPSTREAM_API_KEY; `dawatch demo` works without an upstream',
      ),
    ...emptyVariables(env),
    file !== undefined &&
      hasSecrets &&
      (statSync(file).mode & OPEN_TO_OTHERS) !== 0 &&
      warning(
        'settings',
        `all users of this machine may read ${file}, which contains secrets`,
        `chmod o-rwx ${file}, or set secrets in the environment or in files of their own`,
      ),
  );
}

/** Warns of empty variables, which are treated as not set. */
function emptyVariables(env: Record<string, string | undefined>): Finding[] {
  return Object.keys(ENVIRONMENT)
    .filter((name) => env[name] === '')
    .map((name) =>
      warning(
        'settings',
        `${name} is empty and treated as not set`,
        'set its value, or unset the variable',
      ),
    );
}

/**
 * Checks that clients can authenticate: without any credential, the server only listens on a
 * loopback address.
 */
export function checkCredentials(
  { auth, oidc, server }: Config,
  seen: LedgerInspection,
): Finding[] {
  const isSet = auth.api_key !== undefined || auth.admin_token !== undefined;
  if (isSet) return [ok('credentials', 'set'), ...checkStrength(auth)];
  if (seen.kind === 'current' && seen.hasCredential) return [ok('credentials', 'in the ledger')];
  if (oidc.issuer !== undefined)
    return [ok('credentials', 'only those of the provider; clients need a token')];
  if (seen.kind === 'refused' || (seen.kind === 'older' && seen.found > 0)) return [];
  if (isLoopback(server.host))
    return [ok('credentials', 'none yet: the first start creates a service key and prints it')];
  const advice =
    'set DAWATCH_API_KEY (at least 16 characters), or, if the ledger exists, create a token with `dawatch token create`';
  return [
    problem('credentials', `none, so the server refuses to listen on ${server.host}`, advice),
  ];
}

/**
 * Checks whether credentials in the settings look chosen by a person and are therefore guessable.
 */
function checkStrength({ api_key, admin_token }: Config['auth']): Finding[] {
  const weak = Object.entries({ api_key, admin_token }).flatMap(([name, secret]) => {
    const weakness = secret === undefined ? undefined : weaknessOf(secret);
    if (weakness === undefined) return [];
    const role = name === 'api_key' ? 'service' : 'admin';
    const action = `use a token of \`dawatch token create --role ${role} --name …\` instead`;
    return [
      warning(
        'credentials',
        `${settingName(`auth.${name}`)} does not look random: ${weakness}`,
        action,
      ),
    ];
  });
  if (api_key === undefined || api_key !== admin_token) return weak;
  const both = `${settingName('auth.api_key')} and ${settingName('auth.admin_token')}`;
  const conflict = `${both} are identical, so that the admin token has the role service`;
  return [...weak, problem('credentials', conflict, 'set two different values')];
}

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
function weaknessOf(secret: string): string | undefined {
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
