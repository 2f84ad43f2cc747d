import { test } from 'vitest';
import { killServer } from '../support/server-kills.ts';

test('fifty kills -9 at random moments lose nothing that was acknowledged', () =>
  killServer({ kills: 50, submissions: 3_000 }));
