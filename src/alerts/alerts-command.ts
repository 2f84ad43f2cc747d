import { Argument, type Command, Option } from 'commander';
import {
  type ConnectOptions,
  connect,
  requestAsAdmin,
  requestAsOperator,
  serverAddress,
  withAdmin,
  withServer,
} from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { numberFrom, parseAhead, parseCount } from '../cli/input.ts';
import { coloured, factTable, table, toJson, withWaitIndicator } from '../cli/output.ts';
import type { Alert, Mute, NewMute } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { ALERT_RULES, type AlertRule } from '../notifications/alert.ts';

type Options = ConnectOptions & { json?: boolean };
type MuteOptions = Options & {
  all?: boolean;
  from?: (now: number) => number;
  until: (from: number) => number;
  reason?: string;
};

const MAX_CHARS = 2_100;
const ID = 'id of the alert, from `dawatch alerts list`';
const ACTIVE =
  'Alerts that it covers are recorded and not sent. Those that still fire at its end are sent then.';
const parseId = numberFrom('dawatch alerts list');

export function addAlerts(program: Command): void {
  const alerts = program
    .command('alerts')
    .description(
      'Show alerts, acknowledge and mute them, and plan maintenance windows. Without a subcommand: list.',
    );
  addList(alerts);
  addAcknowledge(alerts);
  addMute(alerts);
  addMutes(alerts);
  addUnmute(alerts);
}

function addList(alerts: Command): void {
  withServer(alerts.command('list', { isDefault: true }))
    .description('List firing alerts, newest first, also acknowledged and muted ones.')
    .addOption(
      new Option('--state <state>', 'firing, resolved within the last 30 days, or all')
        .choices(['firing', 'resolved', 'all'])
        .default('firing'),
    )
    .option('--limit <count>', 'maximum number of alerts, 1 to 1000', parseCount, 100)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(
      async ({
        state,
        limit,
        ...options
      }: Options & { state: 'firing' | 'resolved' | 'all'; limit: number }) => {
        const page = await withWaitIndicator(
          serverAddress(options),
          connect(options).alerts.list({ state, limit }),
        );
        if (options.json) process.stdout.write(`${toJson(page)}\n`);
        else if (page.alerts.length === 0)
          process.stderr.write(`no alerts${state === 'all' ? '' : ` are ${state}`}\n`);
        else process.stdout.write(table([HEAD, ...page.alerts.map(toRow)]));
      },
    );
}

const HEAD = ['id', 'since', 'state', 'rule', 'subject', 'summary'];

function toRow(alert: Alert): string[] {
  const { id, since, rule, subject, summary } = alert;
  const about = [rule, subject, summary].map((text) => escapeText(text, MAX_CHARS));
  return [String(id), escapeText(since), coloured(stateOf(alert)), ...about];
}

function stateOf({ firing, acknowledged, muted_until, resolved_at }: Alert): string {
  if (!firing) return `resolved ${resolved_at}`;
  if (acknowledged) return `acknowledged by ${acknowledged.by}`;
  return muted_until === null ? 'firing' : `muted until ${muted_until}`;
}

function addAcknowledge(alerts: Command): void {
  withAdmin(alerts.command('acknowledge'))
    .description(
      'Acknowledge an alert: no reminders are sent for it. The acknowledgement ends with the alert.',
    )
    .argument('<id>', ID, parseId)
    .option('--withdraw', 'withdraw the acknowledgement')
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(async (id: number, options: Options & { withdraw?: boolean }) => {
      const alert = await requestAsAdmin(options, ({ alerts }) =>
        options.withdraw ? alerts.unacknowledge(id) : alerts.acknowledge(id),
      );
      process.stdout.write(options.json ? `${toJson(alert)}\n` : alertText(alert));
    });
}

/** Returns the facts about an alert, one per line. */
function alertText(alert: Alert): string {
  return factTable(
    [
      ['alert', String(alert.id)],
      ['rule', alert.rule],
      ['subject', alert.subject],
      ['summary', alert.summary],
      ['since', alert.since],
      ['state', stateOf(alert)],
      ['link', alert.link],
    ],
    MAX_CHARS,
  );
}

function addMute(alerts: Command): void {
  withAdmin(alerts.command('mute'))
    .description(
      `Mute the alerts of a rule, or only those about one subject, or plan a maintenance window: a mute of all alerts. ${ACTIVE}`,
    )
    .addArgument(new Argument('[rule]', 'rule of the alerts').choices(ALERT_RULES))
    .argument(
      '[subject]',
      'upstream or destination, as `dawatch alerts list` shows it; default: all alerts of the rule',
    )
    .option('--all', 'instead of a rule: all alerts')
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
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch alerts mute stuck default --until 2h --reason "the chain is halted"\n' +
        '  dawatch alerts mute --all --from 2026-12-05T22:00:00Z --until 4h --reason "database upgrade"',
    )
    .action(
      async (rule: AlertRule | undefined, subject: string | undefined, options: MuteOptions) => {
        if ((rule === undefined) !== (options.all === true))
          throw new CommandError('give either a rule or --all', ExitCode.usage);
        const now = Date.now();
        const from = options.from?.(now);
        const mute: NewMute = {
          ...(rule !== undefined && { rule, subject: subject ?? null }),
          ...(from !== undefined && { from: new Date(from).toISOString() }),
          until: new Date(options.until(from ?? now)).toISOString(),
          ...(options.reason !== undefined && { reason: options.reason }),
        };
        const made = await requestAsAdmin(options, (client) => client.alerts.mute(mute));
        process.stdout.write(options.json ? `${toJson(made)}\n` : muteText(made));
      },
    );
}

function addMutes(alerts: Command): void {
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

function addUnmute(alerts: Command): void {
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
