import { test } from 'vitest';
import { killServer } from '../support/server-kills.ts';

test('a hundred kills -9 at random moments lose nothing that was acknowledged', () =>
  killServer({ kills: 100, submissions: 6_000 }));
