import { digest, uuidOf } from './chain/digest.ts';

/** A user as sent in responses. */
export type UserRecord = ReturnType<typeof record>;

export type Users = ReturnType<typeof createUsers>;

const COUNT = 25;

export function createUsers(seed: number) {
  const records = Array.from({ length: COUNT }, (_, index) => record(index, seed));
  const byEmail = new Map(records.map((user) => [user.email, user]));

  return {
    list: (limit: number): readonly UserRecord[] => records.slice(0, limit),
    find(name: string, email: string): UserRecord | undefined {
      const user = byEmail.get(email);
      return user?.name === name ? user : undefined;
    },
  };
}

function record(index: number, seed: number) {
  const hex = digest('user', seed, index);
  const number = index + 1;
  return {
    id: uuidOf(hex),
    name: `User ${number}`,
    email: `user${number}@example.com`,
    app_id: 100 + index,
    assigned_wallet: `0x${hex}`,
  };
}
