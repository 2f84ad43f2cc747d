/** Shorter ones may stand in any text by chance; so may digits and hashes, which answers are full of. */
const MIN_CHARS = 8;
const MIN_HEX_CHARS = 16;

/**
 * Takes these secrets out of texts from outside: a service that was sent one may quote it. As they are, in base64, and as
 * JSON (nested three times at most), URLs and HTML escape any of their characters.
 */
export function redactorOf(secrets: readonly string[], mask = '[redacted]'): (text: string) => string {
  const forms = secrets
    .filter((secret) => secret.length >= (/^[0-9a-f]+$/i.test(secret) ? MIN_HEX_CHARS : MIN_CHARS))
    .toSorted((a, b) => b.length - a.length)
    .flatMap((secret) => [secret, ...inBase64(secret)])
    .map((plain) => ({ plain, pattern: undefined as RegExp | undefined }));
  return (text) => {
    // Most texts have nothing escaped, and the search for a plain text takes a fraction of the time.
    const hasEscapes = /[\\%&]/.test(text);
    return forms.reduce((masked, form) => {
      if (!hasEscapes) return masked.replaceAll(form.plain, () => mask);
      form.pattern ??= patternOf(form.plain);
      return masked.replace(form.pattern, () => mask);
    }, text);
  };
}

/**
 * Base64 writes three bytes as four characters, so there are three forms, by how many bytes stand before the secret: a user's
 * name, say. The characters at both ends that are shared with other bytes are left out.
 */
function inBase64(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const cores = [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const core = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...new Set(cores)];
}

/** Every quantifier has an end, and what follows it begins otherwise: a hostile text costs no more than a long one. Exported for the test of that. */
export function patternOf(secret: string): RegExp {
  const parts = secret.match(/\\+|[^\\]/gu) ?? [];
  const source = parts.map((part, index) => {
    if (part.startsWith('\\')) return backslashes(part.length, { isLast: index === parts.length - 1 });
    return character(part, { mayFollowBackslashes: !parts[index - 1]?.startsWith('\\') });
  });
  return new RegExp(source.join(''), 'g');
}

const NAMED: Record<string, string | undefined> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' };
/** Backslashes before an escape: one in JSON, three in JSON within JSON, seven in one more. */
const MAX_BACKSLASHES = 8;

/**
 * Backslashes that are meant, with those that JSON puts before them and before what follows. At the end only their own: the
 * next one may escape what is not of the secret.
 */
function backslashes(count: number, { isLast }: { isLast: boolean }): string {
  if (isLast) return `(?:\\\\u005[cC]|%(?:25)?5[cC]|&#(?:92|[xX]5[cC]);|\\\\\\\\|\\\\){${count}}`;
  const most = MAX_BACKSLASHES * (count + 1);
  return `(?:\\\\u005[cC]|%(?:25)?5[cC]|&#(?:92|[xX]5[cC]);|\\\\){${count},${most}}`;
}

function character(char: string, { mayFollowBackslashes }: { mayFollowBackslashes: boolean }): string {
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at));
  const digits = units.map((unit) => unit.toString(16).padStart(4, '0'));
  const inJson = digits.map((hex) => `\\\\{1,${MAX_BACKSLASHES}}u${anyCase(hex)}`);
  const inUrl = [...Buffer.from(char)].map((byte) => `%(?:25)?${anyCase(byte.toString(16).padStart(2, '0'))}`);
  const code = char.codePointAt(0) ?? 0;
  const inHtml = `&(?:#0{0,4}${code}|#[xX]0{0,4}${anyCase(code.toString(16))}${NAMED[char] ? `|${NAMED[char]}` : ''});`;
  const plain = `${mayFollowBackslashes ? `\\\\{0,${MAX_BACKSLASHES}}` : ''}${digits.map((hex) => `\\u${hex}`).join('')}`;
  return `(?:${[plain, inJson.join(''), inUrl.join(''), inHtml].join('|')})`;
}

/** Hexadecimal digits, large or small. */
function anyCase(hex: string): string {
  return hex.replace(/[a-f]/gi, (digit) => `[${digit.toLowerCase()}${digit.toUpperCase()}]`);
}
