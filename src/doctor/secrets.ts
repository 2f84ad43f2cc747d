import { isSecret, type Setting } from '../config.ts';
import type { Finding } from './finding.ts';

const MIN_CHARS = 4;

/** A second line of defence: an upstream may quote the key that it refuses. */
export function withoutSecrets(findings: readonly Finding[], settings: readonly Setting[]): Finding[] {
  const secrets = settings
    .filter(({ path, value }) => isSecret(path) && typeof value === 'string')
    .flatMap(({ value }) => [String(value), ...partsOf(String(value))])
    .filter((secret) => secret.length >= MIN_CHARS)
    .sort((a, b) => b.length - a.length);
  const mask = (text: string) => secrets.reduce((masked, secret) => masked.replaceAll(secret, '********'), text);
  return findings.map((finding) => ({
    ...finding,
    message: mask(finding.message),
    action: finding.action && mask(finding.action),
  }));
}

/** Of an address the password and the path, which may be a key; its host may be shown. */
function partsOf(text: string): string[] {
  const url = URL.parse(text);
  return url ? [url.password, decoded(url.password), url.pathname] : [];
}

/** As it is, where a % begins nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
