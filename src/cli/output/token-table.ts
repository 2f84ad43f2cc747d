import { escapeText } from '../../domain/text.ts';
import type { toCredentialBody } from '../../http/routes/credentials/credential-body.ts';
import { table } from './table.ts';

type Row = ReturnType<typeof toCredentialBody>;

/** Returns a table of tokens. */
export function tokenTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    String(row.id),
    row.role ?? row.scopes.join(' '),
    escapeText(row.person ?? row.name),
    row.created_at,
    lastUseOf(row),
    row.expires_at ?? 'never',
    row.revoked_at ?? '-',
  ]);
  return table([['id', 'role', 'name', 'created', 'last used', 'expires', 'revoked'], ...cells]);
}

/** Returns the time of the last use, and that of replaced tokens that are still accepted. */
function lastUseOf({ last_used_at, replaced_secrets }: Row): string {
  const uses = replaced_secrets.map((old) => `; replaced: ${old.last_used_at ?? 'never'}`);
  return `${last_used_at ?? 'never'}${uses.join('')}`;
}
