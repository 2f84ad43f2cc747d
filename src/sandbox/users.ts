import { digest, uuidOf } from './chain/digest.ts';
import type { SandboxOptions } from './options.ts';

/** A user as sent in responses. */
export type UserRecord = ReturnType<typeof record>;

export type Users = ReturnType<typeof createUsers>;

export function createUsers(options: SandboxOptions) {
  const records = Array.from({ length: options.users }, (_, index) => record(index, options));
  const byEmail = new Map(records.map((user) => [user.email, user]));

  return {
    list: (limit: number): readonly UserRecord[] => records.slice(0, limit),
    find(name: string, email: string): UserRecord | undefined {
      const user = byEmail.get(email);
      return user?.name === name ? user : undefined;
    },
    /** Returns the user of a bearer token or API key. */
    own(principal: 'user' | 'admin'): UserRecord {
      const user = principal === 'user' ? records[0] : records.at(-1);
      return user ?? record(0, options);
    },
  };
}

function record(index: number, { seed, extraFields }: SandboxOptions) {
  const hex = digest('user', seed, index);
  const number = index + 1;
  return {
    id: uuidOf(hex),
    name: `User ${number}`,
    email: `user${number}@example.com`,
    app_id: 100 + index,
    assigned_wallet: `0x${hex}`,
    ...(extraFields ? { credit_balance: BigInt(`0x${hex.slice(0, 32)}`).toString() } : {}),
  };
}
