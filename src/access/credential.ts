import { z } from 'zod';

/** 1 to 64 printable characters; spaces only between them. */
const NAME_PATTERN = /^(?! )[^\p{C}\p{Zl}\p{Zp}]{1,64}(?<! )$/u;

/** Names that the audit uses for callers without a credential in the ledger. */
const RESERVED_NAME = /^(?:forwarded|DAWATCH_|cli:|person:|SIGHUP$|dawatch$|unauthenticated$)/i;

/** Returns why a credential cannot have this name; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (!NAME_PATTERN.test(name))
    return 'must be 1 to 64 printable characters, with spaces only between them';
  return RESERVED_NAME.test(name)
    ? 'must not begin with "forwarded", "DAWATCH_", "cli:" or "person:", or be "SIGHUP", "dawatch" or "unauthenticated"'
    : undefined;
}

export const credentialNameSchema = z
  .string()
  .superRefine((name, context) => {
    const message = nameProblem(name);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .describe('Name of the client, 1 to 64 characters; appears in the audit')
  .meta({ examples: ['billing'] });

export const CREDENTIAL_STATES = ['valid', 'expired', 'revoked'] as const;
export type CredentialState = (typeof CREDENTIAL_STATES)[number];

/** Times are epoch milliseconds. A credential is invalid from the moment of its expiry on. */
export function credentialState(
  { expiresAt, revokedAt }: { expiresAt: number | null; revokedAt: number | null },
  now: number,
): CredentialState {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid';
}
