/** Shorter ones may stand in any text by chance; so may digits and hashes, which answers are full of. */
const MIN_CHARS = 8;
const MIN_HEX_CHARS = 16;

/** Takes these secrets, also as JSON writes them, out of texts from outside: who was sent one may quote it. */
export function redactorOf(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .filter((secret) => secret.length >= (/^[0-9a-f]+$/i.test(secret) ? MIN_HEX_CHARS : MIN_CHARS))
    .toSorted((a, b) => b.length - a.length)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return (text) => forms.reduce((masked, form) => masked.replaceAll(form, '[redacted]'), text);
}
