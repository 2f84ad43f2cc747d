import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { CRASH_ADMIN_TOKEN, sleep } from '../processes/killable-server.ts';

/** Creates a webhook for every event of a killable server. Returns its secret. */
export async function createWebhook(url: string, receiverUrl: string): Promise<string> {
  const response = await fetch(`${url}/v1/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${CRASH_ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiverUrl, types: ['*'] }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { secret: string }).secret;
}

/**
 * Just below the timeout of a fault test. A delivery whose second attempt failed waits for up to 6
 * minutes.
 */
const ALL_DELIVERED_WITHIN_MS = 470_000;

/**
 * Resolves when all submissions are final and no delivery waits. Throws with what is left after
 * almost eight minutes. Leaves no connection open: the last one to close writes the WAL to the
 * ledger file, which the server does when it stops.
 */
export async function allDelivered(file: string, submissions: number): Promise<void> {
  const db = new Database(file, { readonly: true });
  try {
    const left = db.prepare(`
      -- What is still to come; what was discarded went with its webhook.
      SELECT (SELECT count(*) FROM deliveries WHERE state NOT IN ('delivered', 'discarded'))
           + (SELECT @submissions - count(*) FROM submissions WHERE status NOT IN ('tracking', 'pending', 'failing'))`);
    const giveUpAt = performance.now() + ALL_DELIVERED_WITHIN_MS;
    while (Number(left.pluck().get({ submissions })) > 0) {
      if (performance.now() > giveUpAt)
        throw new Error(`still left: ${JSON.stringify(examplesOf(db))}`);
      await sleep(100);
    }
  } finally {
    db.close();
  }
}

/** Returns some of the open submissions and waiting deliveries. */
function examplesOf(db: Database.Database) {
  return {
    submissions: db
      .prepare(
        "SELECT * FROM submissions WHERE status IN ('tracking', 'pending', 'failing') LIMIT 3",
      )
      .all(),
    deliveries: db
      .prepare("SELECT * FROM deliveries WHERE state NOT IN ('delivered', 'discarded') LIMIT 3")
      .all(),
  };
}

/** Returns the ids of all events in their order. */
export function eventIdsOf(file: string): string[] {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare('SELECT id FROM outbox ORDER BY seq').pluck().all() as string[];
  } finally {
    db.close();
  }
}
