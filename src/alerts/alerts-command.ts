import { type Command, Option } from 'commander';
import { coloured } from '../cli/colors.ts';
import {
  type ConnectOptions,
  connect,
  requestAsAdmin,
  serverAddress,
  withAdmin,
  withServer,
} from '../cli/connect.ts';
import { toJson } from '../cli/json.ts';
import { numberFrom, parseCount } from '../cli/numbers.ts';
import { factTable, table } from '../cli/table.ts';
import type { Alert } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { withWaitIndicator } from '../submissions/wait-indicator.ts';
import { addMaintenance, addMute, addMutes, addUnmute } from './mutes-command.ts';

type Options = ConnectOptions & { json?: boolean };

const MAX_CHARS = 2_100;
const ID = 'id of the alert, from `dawatch alerts list`';
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
  addMaintenance(alerts);
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
