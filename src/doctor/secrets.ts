import { type Setting, secretsOf } from '../config/load.ts';
import { isSecret } from '../config/secret-files.ts';
import { redactorOf } from '../domain/redaction.ts';
import type { Finding } from './finding.ts';

const MASK = '********';
/** Shorter secrets are not masked, because they would match ordinary text. */
const MIN_CHARS = 4;

/** Masks secrets in findings, because an upstream may quote the key that it refuses. */
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

/** Returns the paths of secret addresses, which may be keys. Their hosts are not secret. */
function pathsOf(settings: readonly Setting[]): string[] {
  return settings.flatMap(({ path, value }) => (isSecret(path) ? (URL.parse(String(value))?.pathname ?? []) : []));
}
