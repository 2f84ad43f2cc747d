/** Shorter ones may stand in any text by chance; so may digits and hashes, which answers are full of. */
const MIN_CHARS = 8;
const MIN_HEX_CHARS = 16;

/** A text from outside without these secrets, also as JSON writes them: who was sent one may quote it. */
export function redact(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= (/^[0-9a-f]+$/i.test(secret) ? MIN_HEX_CHARS : MIN_CHARS))
    .toSorted((a, b) => b.length - a.length)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .reduce((masked, secret) => masked.replaceAll(secret, '[redacted]'), text);
}
