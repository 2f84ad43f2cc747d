import { sha256 } from '../../../src/access/access.ts';
import { CredentialStore, makeToken } from '../../../src/access/credentials-store.ts';
import type { Role } from '../../../src/access/scopes.ts';
import { openBeside } from '../../../src/ledger/open.ts';

/** Works with the credentials of a ledger, also while a server has it. */
export function withStore<T>(database: string, work: (store: CredentialStore) => T): T {
  const { database: ledger, close } = openBeside({ file: database, now: 0 });
  try {
    return work(new CredentialStore(ledger));
  } finally {
    close();
  }
}

/** Stores a token of this role. */
export function storeToken(database: string, role: Role, name = `the ${role}`) {
  const token = makeToken(role);
  const { id } = withStore(database, (store) => store.add({ hash: sha256(token), role, name }, 0));
  return { id, token, revoke: () => withStore(database, (store) => store.revoke(id, 1)) };
}
