import { expect, it } from 'vitest';
import { walkSql } from '../../src/ledger/page.ts';
import { type DeliveryFilter, deliveryWalkOf } from '../../src/notifications/delivery.ts';
import { openLedger, rawConnection } from '../support/ledger/ledger-file.ts';

it.each<[DeliveryFilter, index: string]>([
  [{ submissionId: 'a', destination: 'channel:a' }, 'deliveries_by_event'],
  [{ state: 'dead', destination: 'channel:a' }, 'deliveries_dead_by_id'],
  [{ state: 'failing' }, 'deliveries_failing'],
  [{ destination: 'webhook:wh_1', state: 'delivered' }, 'deliveries_by_destination'],
  [{ destination: 'webhook:callbacks' }, 'INTEGER PRIMARY KEY'],
])('a list of deliveries for %j reads an index', (filter, index) => {
  const walk = deliveryWalkOf(filter, undefined);
  const steps = rawConnection(openLedger().file)
    .prepare(`EXPLAIN QUERY PLAN ${walkSql(walk)}`)
    .all({ ...walk.parameters, rows: 1 })
    .map((step) => (step as { detail: string }).detail);
  expect(steps[0]).toContain(index);
  // The few deliveries of an event are sorted.
  const isSorted = steps.some((step) => step.includes('TEMP B-TREE'));
  expect(isSorted).toBe(index === 'deliveries_by_event');
});
