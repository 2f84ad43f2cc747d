import { test } from 'vitest';
import { killServer } from '../faults/support/server-kills.ts';

// Many more: test/faults/processes/kill-server.fault.ts.
test('kill -9 at three random moments loses nothing that was acknowledged', { timeout: 150_000 }, () =>
  killServer({ kills: 3, submissions: 300 }),
);
