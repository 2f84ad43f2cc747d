import { describe, expect, it } from 'vitest';
import {
  createMatcher,
  eventTypeSchema,
  metadataFilterSchema,
} from '../../src/notifications/webhook.ts';

const matches = (
  types: string[],
  metadata: Record<string, unknown> | null,
  event: { type: string; metadata?: object },
) =>
  createMatcher({ types, metadata })({
    type: event.type,
    metadata: (event.metadata as Record<string, unknown>) ?? null,
  });

describe('types', () => {
  it.each([
    [['*'], 'submission.finalized', true],
    [['*'], 'alert.raised', true],
    [['submission.*'], 'submission.finalized', true],
    [['submission.*'], 'upstream.down', false],
    [['submission.failed', 'upstream.*'], 'upstream.down', true],
    [['submission.failed'], 'submission.failing', false],
    [[], 'submission.failed', false],
  ])('%j and %s: %s', (types, type, expected) => {
    expect(matches(types, null, { type })).toBe(expected);
  });

  it.each([
    '',
    'submission',
    'submission.',
    'Submission.*',
    '**',
    'submission.done',
    'sub*',
    '*.failed',
  ])('%j is not a list of types', (type) => {
    const { error } = eventTypeSchema.safeParse(type);
    expect(error?.issues[0]?.message).toContain('is not an event type; valid are *, submission.*');
  });
});

describe('metadata', () => {
  it.each<[Record<string, unknown>, object | undefined, boolean]>([
    [{ team: 'billing' }, { team: 'billing', order: 1 }, true],
    [{ team: 'billing' }, { team: 'Billing' }, false],
    [{ team: 'billing', order: 1 }, { team: 'billing' }, false],
    [{ order: 1 }, { order: '1' }, false],
    [{ a: null }, { a: null }, true],
    [{ a: null }, {}, false],
    [{ a: null }, undefined, false],
    [{ toString: 'x' }, {}, false],
  ])('%j and %j: %s', (filter, metadata, expected) => {
    expect(
      matches(['*'], filter, { type: 'submission.failed', ...(metadata && { metadata }) }),
    ).toBe(expected);
  });

  it.each([{}, { a: {} }, { a: [1] }, [], 'a', { '': 1 }, { a: 'x'.repeat(3_000) }])(
    '%j is not a filter',
    (filter) => {
      expect(metadataFilterSchema.safeParse(filter).success).toBe(false);
    },
  );
});
