import { test } from 'vitest';
import { killDeliveries } from '../support/delivery-kills.ts';

test('thirty kills -9 during deliveries: every event arrives, none is skipped, repeats carry the same id and body', () =>
  killDeliveries({ kills: 30 }));
