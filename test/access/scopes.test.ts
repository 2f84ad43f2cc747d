import { describe, expect, it } from 'vitest';
import {
  fromStoredRights,
  ROLES,
  rightsOfRole,
  rightsOfScopes,
  SCOPES,
  toStoredRights,
} from '../../src/access/access.ts';

describe('rights', () => {
  it.each([...ROLES.map(rightsOfRole), ...SCOPES.map((scope) => rightsOfScopes([scope]))])(
    'are stored: %o',
    (rights) => {
      expect(fromStoredRights(toStoredRights(rights))).toEqual(rights);
    },
  );

  it('of scopes are the same in any order, and with repetitions', () => {
    const rights = rightsOfScopes(['submissions:read', 'webhooks:write']);
    expect(rightsOfScopes(['webhooks:write', 'submissions:read', 'webhooks:write'])).toEqual(
      rights,
    );
    expect(toStoredRights(rights)).toEqual({
      role: 'scoped',
      scopes: 'submissions:read webhooks:write',
    });
  });

  it('with the scope admin include all scopes', () => {
    expect([...rightsOfScopes(['admin']).scopes]).toEqual([...SCOPES]);
  });

  it.each([
    ['an unknown role', 'root', null],
    ['no scopes', 'scoped', null],
    ['empty scopes', 'scoped', ''],
    ['an unknown scope', 'scoped', 'submissions:read everything'],
    ['scopes of its own and a role', 'admin', 'submissions:read'],
  ])('are none for %s, as a newer version may have stored it', (_what, role, scopes) => {
    expect(fromStoredRights({ role, scopes })).toBeUndefined();
  });
});
