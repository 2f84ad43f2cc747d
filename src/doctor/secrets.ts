import { isSecret, type Setting, secretsOf } from '../config/load.ts';
import { redactorOf } from '../domain/redaction.ts';
import type { Finding } from './finding.ts';

const MASK = '********';
/** Findings are short, and what is masked in them by chance does no harm. */
const MIN_CHARS = 4;

/** A second line of defence: an upstream may quote the key that it refuses. */
export function withoutSecrets(findings: readonly Finding[], settings: readonly Setting[]): Finding[] {
  const secrets = [...secretsOf(settings), ...pathsOf(settings)].sort((a, b) => b.length - a.length);
  const short = secrets.filter((secret) => secret.length >= MIN_CHARS);
  const redact = redactorOf(secrets, MASK);
  const mask = (text: string) => short.reduce((masked, secret) => masked.replaceAll(secret, MASK), redact(text));
  return findings.map((finding) => ({
    ...finding,
    message: mask(finding.message),
    action: finding.action && mask(finding.action),
  }));
}

/** Of an address the path too, which may be a key; its host may be shown. */
function pathsOf(settings: readonly Setting[]): string[] {
  return settings.flatMap(({ path, value }) => (isSecret(path) ? (URL.parse(String(value))?.pathname ?? []) : []));
}
