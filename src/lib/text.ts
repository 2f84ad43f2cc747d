const DEFAULT_MAX_CHARS = 500;

/** For a log line or terminal: escapes C0, C1, bidirectional and invisible characters. */
export function escapeText(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  const short = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  return short.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped);
}

/** Like escapeText for a text of several lines, without truncation. */
export function escapeLines(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeText(line, line.length))
    .join('\n');
}

/** Escapes the same in JSON, where those below U+0020 are escaped. The value is unchanged. */
export function escapeJson(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu, escaped);
}

function escaped(char: string): string {
  return Array.from(
    { length: char.length },
    (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
}

/** Shorter secrets, and hexadecimal numbers, occur in responses by chance. */
const MIN_CHARS = 8;
const MIN_HEX_CHARS = 16;

/**
 * Masks secrets that a service may quote: plain, in base64, and escaped as in JSON (nested up to
 * three times), URLs or HTML.
 */
export function redactorOf(
  secrets: readonly string[],
  mask = '[redacted]',
): (text: string) => string {
  const forms = secrets
    .filter((secret) => secret.length >= (/^[0-9a-f]+$/i.test(secret) ? MIN_HEX_CHARS : MIN_CHARS))
    .toSorted((a, b) => b.length - a.length)
    .flatMap((secret) => [secret, ...inBase64(secret)])
    .map((plain) => ({ plain, pattern: undefined as RegExp | undefined }));
  return (text) => {
    // Most texts contain no escapes. Without patterns for them, a delivery takes a fraction of the
    // time (row webhooks).
    const hasEscapes = /[\\%&]/.test(text);
    return forms.reduce((masked, form) => {
      if (!hasEscapes) return masked.replaceAll(form.plain, () => mask);
      form.pattern ??= patternOf(form.plain);
      return masked.replace(form.pattern, () => mask);
    }, text);
  };
}

/** Three forms, by the bytes before it; characters shared with neighboring bytes are left out. */
function inBase64(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const cores = [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const core = text.slice(
      Math.ceil((before * 8) / 6),
      Math.floor(((before + bytes.length) * 8) / 6),
    );
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...new Set(cores)];
}

/** Bounded quantifiers: linear time for hostile text. Exported for the test of that. */
export function patternOf(secret: string): RegExp {
  const parts = secret.match(/\\+|[^\\]/gu) ?? [];
  const source = parts.map((part, index) => {
    if (part.startsWith('\\'))
      return backslashes(part.length, { isLast: index === parts.length - 1 });
    return character(part, { mayFollowBackslashes: !parts[index - 1]?.startsWith('\\') });
  });
  return new RegExp(source.join(''), 'g');
}

const NAMED: Record<string, string | undefined> = {
  '&': 'amp',
  '<': 'lt',
  '>': 'gt',
  '"': 'quot',
  "'": 'apos',
};
/** Backslashes before an escape: one in JSON, three in JSON within JSON, seven in a third level. */
const MAX_BACKSLASHES = 8;

/**
 * Matches backslashes of the secret with those that JSON adds before them and before the next
 * character. At the end of the secret only its own: the next backslash may escape a character that
 * is not part of the secret.
 */
function backslashes(count: number, { isLast }: { isLast: boolean }): string {
  if (isLast) return `(?:\\\\u005[cC]|%(?:25)?5[cC]|&#(?:92|[xX]5[cC]);|\\\\\\\\|\\\\){${count}}`;
  const most = MAX_BACKSLASHES * (count + 1);
  return `(?:\\\\u005[cC]|%(?:25)?5[cC]|&#(?:92|[xX]5[cC]);|\\\\){${count},${most}}`;
}

function character(
  char: string,
  { mayFollowBackslashes }: { mayFollowBackslashes: boolean },
): string {
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at));
  const digits = units.map((unit) => unit.toString(16).padStart(4, '0'));
  const inJson = digits.map((hex) => `\\\\{1,${MAX_BACKSLASHES}}u${anyCase(hex)}`);
  const inUrl = [...Buffer.from(char)].map(
    (byte) => `%(?:25)?${anyCase(byte.toString(16).padStart(2, '0'))}`,
  );
  const code = char.codePointAt(0) ?? 0;
  const inHtml = `&(?:#0{0,4}${code}|#[xX]0{0,4}${anyCase(code.toString(16))}${NAMED[char] ? `|${NAMED[char]}` : ''});`;
  const plain = `${mayFollowBackslashes ? `\\\\{0,${MAX_BACKSLASHES}}` : ''}${digits.map((hex) => `\\u${hex}`).join('')}`;
  return `(?:${[plain, inJson.join(''), inUrl.join(''), inHtml].join('|')})`;
}

function anyCase(hex: string): string {
  return hex.replace(/[a-f]/gi, (digit) => `[${digit.toLowerCase()}${digit.toUpperCase()}]`);
}
