import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const USERS = ['server', 'worker', 'producer', 'consumer'] as const;
type User = (typeof USERS)[number];

/** Returns the rules of a user as docs/queues.md documents them. */
function documentedRules(user: User): string[] {
  const line = new RegExp(`^ACL SETUSER dawatch-${user} (.+)$`, 'm').exec(
    readFileSync('docs/queues.md', 'utf8'),
  )?.[1];
  if (line === undefined) throw new Error(`docs/queues.md documents no user dawatch-${user}`);
  return line.split(' ');
}

/**
 * Creates the documented users. Returns the address of Redis for each, with a password of its own.
 */
export async function createUsers(admin: Redis, url: string): Promise<Record<User, string>> {
  const addresses = USERS.map(async (user): Promise<[User, string]> => {
    const password = `password-of-${user}`;
    const rules = documentedRules(user).map((rule) =>
      rule.startsWith('>') ? `>${password}` : rule,
    );
    await admin.call('ACL', 'SETUSER', `dawatch-${user}`, ...rules);
    return [user, url.replace('//', `//dawatch-${user}:${password}@`)];
  });
  return Object.fromEntries(await Promise.all(addresses)) as Record<User, string>;
}

/** Returns what was denied since the last call, as "user object". */
export async function deniedSince(admin: Redis): Promise<string[]> {
  const entries = (await admin.call('ACL', 'LOG')) as string[][];
  await admin.call('ACL', 'LOG', 'RESET');
  const field = (entry: string[], name: string) => entry[entry.indexOf(name) + 1];
  return entries.map((entry) => `${field(entry, 'username')} ${field(entry, 'object')}`);
}
