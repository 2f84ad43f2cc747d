import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { checkWith, type SchemaProblem } from '../operations/config/schema-problems.ts';
import { sandboxOptionFields, sandboxOptionsSchema } from '../sandbox/options.ts';
import { CommandError, ExitCode, untilStopped } from './exit.ts';

/** The examples of the documents and of the OpenAPI document. */
const EXAMPLE = { id: '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325', data: 'hello' };

export function addSandbox(program: Command): void {
  const command = program
    .command('sandbox')
    .description('Run a simulated upstream for trials and tests.')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 selects a free port', portNumber, 8790)
    .addHelpText(
      'after',
      `
Submit data and query the submission:
  curl -H 'x-api-key: sandbox-key' -H 'content-type: application/json' -d '{"data":"hello"}' http://127.0.0.1:8790/v1/submit_data
  curl -H 'x-api-key: sandbox-key' 'http://127.0.0.1:8790/v1/get_submission_info?submission_id=${EXAMPLE.id}'`,
    );
  for (const [name, schema] of Object.entries(sandboxOptionFields.shape))
    command.addOption(toFlag(name, schema));
  command.action(async (flags: { host: string; port: number } & Record<string, unknown>) => {
    const { host, port, ...given } = flags;
    const options = checkWith(sandboxOptionsSchema, given);
    if (options.kind === 'invalid')
      throw new CommandError(explain(options.problems), ExitCode.usage);
    const { startSandbox } = await import('../sandbox/server.ts');
    const sandbox = await startSandbox({ options: options.data, host, port });
    sandbox.model.submit(EXAMPLE.data, Date.now(), EXAMPLE.id);
    process.stdout.write(
      `sandbox upstream listens on ${sandbox.url}, API key ${options.data.apiKey}\nsubmission ${EXAMPLE.id} has the data "${EXAMPLE.data}"\n`,
    );
    await untilStopped();
    await sandbox.close();
  });
}

/** Returns the flag of a sandbox option: slotS → --slot-s. */
function toFlag(name: string, schema: z.ZodType): Option {
  const fallback = z.parse(z.object({ value: schema }), { value: undefined }).value;
  const note = fallback === undefined ? '' : ` (default: ${JSON.stringify(fallback)})`;
  const option = new Option(`${flagOf(name)} <value>`, `${schema.description}${note}`);
  return option.argParser((text) => {
    // The options without a default are numbers.
    if (typeof fallback === 'number' || fallback === undefined)
      return text.trim() === '' ? Number.NaN : Number(text);
    return text;
  });
}

function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function explain(problems: readonly SchemaProblem[]): string {
  return problems.map(({ path, text }) => `${flagOf(path.join('.'))} ${text}`).join('\n');
}

function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('Expected a port, 0 to 65535.');
  return Number(text);
}
