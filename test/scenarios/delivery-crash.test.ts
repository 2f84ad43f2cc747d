import { test } from 'vitest';
import { killDeliveries } from '../faults/support/delivery-kills.ts';

// Many more: test/faults/processes/kill-deliveries.fault.ts.
test(
  'kill -9 during delivery, four times: every event arrives, none is skipped, repeats carry the same id and body',
  {
    timeout: 150_000,
  },
  () => killDeliveries({ kills: 4 }),
);
