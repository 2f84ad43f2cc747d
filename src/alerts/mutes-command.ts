import { Argument, type Command } from 'commander';
import {
  type ConnectOptions,
  requestAsAdmin,
  requestAsOperator,
  withAdmin,
} from '../cli/connect.ts';
import { toJson } from '../cli/json.ts';
import { numberFrom, parseCount } from '../cli/numbers.ts';
import { parseAhead } from '../cli/since.ts';
import { factTable, table } from '../cli/table.ts';
import type { Mute, NewMute } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { ALERT_RULES } from '../notifications/alert.ts';

type Times = { from?: (now: number) => number; until: (from: number) => number; reason?: string };
type Options = ConnectOptions & { json?: boolean };

const MAX_CHARS = 2_100;
const ACTIVE =
  'Alerts that it covers are recorded and not sent. Those that still fire at its end are sent then.';

export function addMute(alerts: Command): void {
  withTimes(withAdmin(alerts.command('mute')))
    .description(`Mute the alerts of a rule, or only those about one subject. ${ACTIVE}`)
    .addArgument(new Argument('<rule>', 'rule of the alerts').choices(ALERT_RULES))
    .argument(
      '[subject]',
      'upstream or destination, as `dawatch alerts list` shows it; default: all alerts of the rule',
    )
    .addHelpText(
      'after',
      '\nExample:\n  dawatch alerts mute stuck default --until 2h --reason "the chain is halted"',
    )
    .action(async (rule: string, subject: string | undefined, options: Options & Times) => {
      await create(options, { rule, subject: subject ?? null });
    });
}

export function addMaintenance(alerts: Command): void {
  withTimes(withAdmin(alerts.command('maintenance')))
    .description(`Plan a maintenance window, a mute of all alerts. ${ACTIVE}`)
    .addHelpText(
      'after',
      '\nExample:\n  dawatch alerts maintenance --from 2026-12-05T22:00:00Z --until 4h --reason "database upgrade"',
    )
    .action((options: Options & Times) => create(options, {}));
}

export function addMutes(alerts: Command): void {
  withAdmin(alerts.command('mutes'))
    .description('List the mutes and maintenance windows that have not ended, newest first.')
    .option('--limit <count>', 'maximum number of mutes, 1 to 1000', parseCount, 100)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(async ({ limit, ...options }: Options & { limit: number }) => {
      const page = await requestAsOperator(options, (client) => client.alerts.mutes({ limit }));
      const head = ['id', 'from', 'until', 'rule', 'subject', 'by', 'reason'];
      const rows = page.mutes.map(({ id, from, until, rule, subject, created_by, reason }) =>
        [String(id), from, until, rule ?? 'all alerts', subject ?? '-', created_by, reason].map(
          (text) => escapeText(text, MAX_CHARS),
        ),
      );
      process.stdout.write(options.json ? `${toJson(page)}\n` : table([head, ...rows]));
    });
}

export function addUnmute(alerts: Command): void {
  withAdmin(alerts.command('unmute'))
    .description('End a mute or a maintenance window, or cancel it before its start.')
    .argument(
      '<id>',
      'id of the mute, from `dawatch alerts mutes`',
      numberFrom('dawatch alerts mutes'),
    )
    .action(async (id: number, options: ConnectOptions) => {
      await requestAsAdmin(options, (client) => client.alerts.unmute(id));
      process.stderr.write(`mute ${id} has ended\n`);
    });
}

function withTimes(command: Command): Command {
  return command
    .requiredOption(
      '--until <time>',
      'end: 2h (after the start), or 2026-01-02T03:04:05Z',
      parseAhead,
    )
    .option(
      '--from <time>',
      'start: 30m (from now), or 2026-01-02T03:04:05Z (default: now)',
      parseAhead,
    )
    .option('--reason <text>', 'reason, up to 200 characters')
    .option('--json', 'print JSON, as returned by the HTTP interface');
}

async function create(
  options: Options & Times,
  about: Pick<NewMute, 'rule' | 'subject'>,
): Promise<void> {
  const now = Date.now();
  const from = options.from?.(now);
  const until = options.until(from ?? now);
  const mute: NewMute = {
    ...about,
    ...(from !== undefined && { from: new Date(from).toISOString() }),
    until: new Date(until).toISOString(),
    ...(options.reason !== undefined && { reason: options.reason }),
  };
  const made = await requestAsAdmin(options, (client) => client.alerts.mute(mute));
  process.stdout.write(options.json ? `${toJson(made)}\n` : muteText(made));
}

function muteText({ id, rule, subject, from, until, reason }: Mute): string {
  return factTable(
    [
      ['mute', String(id)],
      ['rule', rule ?? 'all alerts'],
      ['subject', subject],
      ['from', from],
      ['until', until],
      ['reason', reason || null],
    ],
    MAX_CHARS,
  );
}
