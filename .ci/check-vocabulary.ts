// Rejects retired words in the file names and exported identifiers of src, test, bench and .ci, in
// log event names and in metric names: one term per concept. A run that saw no names is a failure.
import { readdirSync, readFileSync } from 'node:fs';
import { parseSync } from '@swc/core';
import pkg from '../package.json' with { type: 'json' };
import { LOG_EVENTS } from '../src/operations/logging/event-catalog.ts';
import { createMetrics } from '../src/wiring/metrics/metrics.ts';

/** Retired words and the terms that replaced them. */
const RETIRED: Record<string, string> = {
  ask: 'poll',
  asks: 'poll',
  asked: 'poll',
  asking: 'poll',
  question: 'poll',
  questions: 'polls',
  answer: 'response, observation or result',
  answers: 'responses, observations or results',
  answered: 'response, observation or result',
  said: 'message',
  away: 'disconnected',
  seat: 'schedule',
  sooner: 'reschedule',
  brain: 'policy',
  lane: 'poll loop or destination queue',
  lanes: 'poll loops or destination queues',
  hands: 'engine',
  places: 'available',
  allowance: 'available',
  witness: 'circuit breaker',
  witnesses: 'circuit breaker',
  enrol: 'register',
  dismiss: 'unregister',
  recall: 'restore',
  pump: 'dispatcher',
  outcome: 'result',
  outcomes: 'results',
  settlement: 'result',
  told: 'notified',
  tell: 'notify',
  figures: 'stats',
  happened: 'counters',
  standing: 'gauges',
  upkeep: 'maintenance',
  care: 'maintenance',
  fitted: 'truncate',
  printable: 'escape',
  whoever: 'client, caller, user or operator',
  who: 'client, caller, user or operator',
  somebody: 'client, caller, user or operator',
  nobody: 'client, caller, user or operator',
};

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/);
}

/** Names that a module exports by a declaration of its own. */
function exportsOf(path: string): string[] {
  const names: string[] = [];
  const { body } = parseSync(readFileSync(path, 'utf8'), {
    syntax: path.endsWith('.ts') ? 'typescript' : 'ecmascript',
  });
  for (const item of body) {
    if (item.type !== 'ExportDeclaration') continue;
    const { declaration } = item;
    if (declaration.type === 'VariableDeclaration') {
      for (const { id } of declaration.declarations)
        if (id.type === 'Identifier') names.push(id.value);
    } else if ('identifier' in declaration) {
      names.push(declaration.identifier.value);
    } else if ('id' in declaration && declaration.id.type === 'Identifier') {
      names.push(declaration.id.value);
    }
  }
  return names;
}

/** Without the compiled packages and installed ones. */
const OTHERS = /^(?:client|pacing)\/dist|(?:^|\/)node_modules(?:\/|$)/;
const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => !OTHERS.test(path));
const checked: { what: string; name: string }[] = [];
for (const folder of ['src', 'test', 'bench', '.ci'])
  for (const path of filesOf(folder)) {
    checked.push({ what: `file in ${folder}`, name: path });
    if (/\.[jt]s$/.test(path))
      for (const name of exportsOf(`${folder}/${path}`))
        checked.push({ what: `export of ${folder}/${path}`, name });
  }

/**
 * The sandbox, the packages and the dashboard stand alone, and the command line has a `register…`
 * per command.
 */
const OWN_NAMES = /^(sandbox|client|pacing|dashboard)\//;
const places = new Map<string, string[]>();
for (const path of filesOf('src'))
  if (/\.ts$/.test(path) && !OWN_NAMES.test(path))
    for (const name of new Set(exportsOf(`src/${path}`)))
      places.set(name, [...(places.get(name) ?? []), path]);
const shared = [...places].filter(([, paths]) => paths.length > 1);

for (const name of Object.keys(LOG_EVENTS)) checked.push({ what: 'log event', name });
for (const { name } of await createMetrics({ version: pkg.version }).describe())
  checked.push({ what: 'metric', name });

const violations = checked.flatMap(({ what, name }) =>
  wordsOf(name)
    .filter((word) => Object.hasOwn(RETIRED, word))
    .map((word) => `${what} ${name}: "${word}" is retired, use ${RETIRED[word]}`),
);
for (const violation of violations) console.error(violation);
for (const [name, paths] of shared)
  console.error(`${name} is exported by ${paths.join(' and ')}: one name, one meaning`);
if (violations.length + shared.length > 0) process.exit(1);
if (checked.length < 2_000) throw new Error(`only ${checked.length} names were read`);
console.log(`vocabulary holds: ${checked.length} names`);
