import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from '@swc/core';
import { analyse } from 'scslre';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { patternOf } from '../../src/lib/text.ts';

type Expression = { pattern: string; flags: string };

const SRC = join(import.meta.dirname, '../../src');

/**
 * Files whose expressions match only text of dawatch or its operator: its own command line,
 * settings, files and packages.
 */
const OWN_TEXT = [
  /^sandbox\//,
  /^cli\//,
  /-command\.ts$/,
  /\/doctor\.ts$/,
  /^submissions\/cli-/,
  /^dashboard\/assets\.ts$/,
  /^operations\/config\/(?:load|settings-file)\.ts$/,
];

/** Expressions with more than linear time, and why that is harmless. */
const ACCEPTED: Record<string, string> = {
  'notifications/channels/email.ts ^(?:"?([^<>"\\r\\n]*?)"?\\s*<([^\\s@<>",;]+@[^\\s@<>",;]+)>|([^\\s@<>",;]+@[^\\s@<>",;]+))$':
    'the sender of mail, from the settings, at most 320 characters',
  'client/client.ts \\/+$':
    'the address of the server, from the settings of whoever uses the client',
  'notifications/message.ts \\/+$': 'the public address of the server, from the settings',
  'access/cookies.ts \\/+$': 'the public address of the server, from the settings',
  'polling/upstreams.ts \\/+$': 'the address of the upstream, from the settings',
};

/**
 * Returns every regular expression of a file, and the number of those built at run time, which the
 * test cannot analyze.
 */
function expressionsOf(file: string): { literals: Expression[]; made: number } {
  const literals: Expression[] = [];
  let made = 0;
  const walk = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, pattern, flags, callee } = node as Record<string, unknown>;
    if (type === 'RegExpLiteral') literals.push({ pattern: String(pattern), flags: String(flags) });
    if (type === 'NewExpression' && (callee as { value?: string }).value === 'RegExp') made += 1;
    for (const child of Object.values(node)) walk(child);
  };
  walk(
    parseSync(readFileSync(join(SRC, file), 'utf8'), {
      syntax: file.endsWith('.ts') ? 'typescript' : 'ecmascript',
    }),
  );
  return { literals, made };
}

/**
 * Finds expressions that match the same text in several ways or from several positions, by analysis
 * instead of timing.
 */
function riskOf({ pattern, flags }: Expression): string[] {
  return analyse(new RegExp(pattern, flags)).reports.map(({ type }) => type);
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.(ts|js)$/.test(file))
  // The compiled client.
  .filter((file) => !/^(?:client|pacing)\/dist\//.test(file))
  .filter((file) => !OWN_TEXT.some((own) => own.test(file)));

const expressions = files.map((file) => ({ file, ...expressionsOf(file) }));
const found = expressions.flatMap(({ file, literals }) =>
  literals.map((literal) => ({ file, ...literal })),
);

describe('matching a regular expression takes time linear in the length of a text from outside:', () => {
  it.each(expressions.filter(({ literals }) => literals.length > 0))(
    'those of $file',
    ({ file, literals }) => {
      for (const expression of literals.filter(
        ({ pattern }) => !(`${file} ${pattern}` in ACCEPTED),
      ))
        expect(riskOf(expression), `/${expression.pattern}/${expression.flags}`).toEqual([]);
    },
  );

  it.each<[string, RegExp]>([
    ['an e-mail address', z.regexes.html5Email],
    ['a time', z.regexes.datetime({ offset: true })],
  ])('the ones of zod for %s', (_, { source, flags }) => {
    expect(riskOf({ pattern: source, flags })).toEqual([]);
  });

  it('the search finds all expressions', () => {
    expect(found.length).toBeGreaterThan(60);
    const made = expressions.filter((one) => one.made > 0).map(({ file }) => file);
    // Names of dawatch, and texts of Redis; secrets are covered below.
    expect(made.toSorted()).toEqual(['lib/text.ts', 'redis/connections.ts']);
  });

  it.each([
    'a-key-of-mine',
    '\\\\\\',
    '\\a\\\\b',
    'aaaaaaaaaaaaaaaa',
    '%25%25%25',
    '&amp;&#92;\\',
    '\ud83d\udca5\u00e4',
  ])('the one that detects the secret %s', (secret) => {
    const { source, flags } = patternOf(secret);
    expect(riskOf({ pattern: source, flags })).toEqual([]);
  });
});

/**
 * A case that the analysis does not find: a scan of the whole remaining text from each of many
 * positions.
 */
it('none without an anchor scans the whole remaining text for its end', () => {
  const isWide = ({ pattern }: Expression) =>
    !pattern.startsWith('^') && /(?<!\\)\.[*+]./.test(pattern.replace(/\[[^\]]*\]/g, ''));
  const wide = found.filter(isWide);
  expect(wide.map(({ file, pattern }) => `${file} /${pattern}/`)).toEqual([]);
});
