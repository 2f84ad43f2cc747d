import type { Command } from 'commander';
import { escapeText } from '../../../domain/text.ts';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../../connect.ts';
import { parseCount } from '../../input/numbers.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

const COLUMNS = ['at', 'caller', 'token', 'address', 'action', 'result', 'email', 'detail'];

export function addAudit(program: Command): void {
  withAdmin(program.command('audit'))
    .description(
      'Show the audit of user lookups and reloads of the settings, newest first. E-mail addresses are masked.',
    )
    .option('--limit <count>', 'maximum number of entries, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText('after', '\nExample:\n  dawatch audit --limit 100')
    .action(async ({ limit, ...options }: ConnectOptions & { limit: number; json?: boolean }) => {
      const page = await requestAsAdmin(options, (client) => client.audit({ limit }));
      const rows = page.entries.map(({ at, caller, credential_id, address, action, result, email_masked, detail }) =>
        [
          at,
          caller,
          String(credential_id ?? '-'),
          address ?? '-',
          action,
          result,
          email_masked ?? '-',
          detail ?? '',
        ].map((text) => escapeText(text)),
      );
      process.stdout.write(options.json ? `${toJson(page)}\n` : table([COLUMNS, ...rows]));
    });
}
