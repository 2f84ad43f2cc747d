import { ApiError, ConnectionError } from '../client/client.ts';
import { ConfigError } from '../config/load.ts';
import { StartError } from '../config/start-error.ts';
import { escapeText } from '../domain/text.ts';
import { LedgerError } from '../ledger/file/errors.ts';

export const ExitCode = {
  ok: 0,
  unexpected: 1,
  /** Bad arguments, input or settings; the server refused it. */
  usage: 2,
  /** Everything asked for ended, but not everything as finalized. */
  notFinalized: 3,
  /** The time was over first. */
  timeout: 4,
  /** The server or its ledger can't be reached or can't work, or the key isn't accepted. */
  server: 5,
} as const;

export const EXIT_CODE_HELP = `
Exit codes:
  0  done                 3  something ended, but not as finalized
  1  unexpected error     4  the time was over first
  2  bad arguments, input or settings
  5  the server or its ledger can't be reached or can't do it now, or the key isn't accepted`;

const MAX_SAID_CHARS = 2_000;

/** An expected end of a command: its message goes to stderr as it is. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;
  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What to print and how to exit for whatever a command threw; `command`: the first word of its name. */
export function explain(error: unknown, command: string): { message: string; exitCode: number } {
  if (error instanceof CommandError) return { message: error.message, exitCode: error.exitCode };
  if (error instanceof ConfigError)
    return { message: `${error.message}\n(${CONFIG_ADVICE})`, exitCode: ExitCode.usage };
  if (error instanceof ConnectionError)
    return {
      message: `${error.message}: is \`dawatch serve\` running there? (another address: --server or DAWATCH_URL)`,
      exitCode: ExitCode.server,
    };
  if (error instanceof ApiError) return { message: explainApi(error, command), exitCode: apiExitCode(error.status) };
  if (error instanceof StartError) return { message: error.message, exitCode: ExitCode.usage };
  if (!(error instanceof Error)) return { message: String(error), exitCode: ExitCode.unexpected };
  // A path that was given can't be used, or the disk can't: the first is for whoever gave it to mend.
  if (error instanceof LedgerError) {
    const isPath = error.problem === 'read_only' || error.problem === 'foreign';
    return { message: error.message, exitCode: isPath ? ExitCode.usage : ExitCode.server };
  }
  // Those of the system say what is wrong (a port in use); anything else is a fault of ours and shows where.
  return 'code' in error
    ? { message: listenText(error, command) ?? error.message, exitCode: ExitCode.usage }
    : { message: error.stack ?? error.message, exitCode: ExitCode.unexpected };
}

/** What the server says stays on one line: it may be any server. */
function explainApi(error: ApiError, command: string): string {
  const said = escapeText(error.message, MAX_SAID_CHARS);
  if (error.status === 401 || error.status === 403) return advised(said, KEY_ADVICE);
  if (error.status === 429) return advised(said, 'try again in a minute; limits.… of the server sets how many');
  return advised(said, error.status === 404 ? NOT_FOUND_ADVICE[command] : undefined);
}

function advised(message: string, advice: string | undefined): string {
  return advice === undefined ? message : `${message} (${advice})`;
}

const KEY_ADVICE =
  'DAWATCH_API_KEY holds the key that was sent: `dawatch serve` showed one at its first start, `dawatch token create --role service` makes one';

const CONFIG_ADVICE = 'config/dawatch.yaml explains every setting; DAWATCH_CONFIG names another file';

const NOT_FOUND_ADVICE: Record<string, string | undefined> = {
  status: '`dawatch status` lists the newest; `dawatch track` hands one over',
  wait: '`dawatch track` hands it over; with --wait it waits too',
  cancel: '`dawatch status` lists the newest',
  webhooks: '`dawatch webhooks list` shows them',
  deliveries: '`dawatch deliveries list` shows them',
};

/** What keeps a command from listening, in a sentence; undefined: the error is about something else. */
function listenText(error: Error, command: string): string | undefined {
  if (command !== 'serve' && command !== 'sandbox') return undefined;
  const { code, syscall, address, port, hostname } = error as SystemError;
  const { host: hostFrom, port: portFrom } = command === 'sandbox' ? SANDBOX_FLAGS : SETTINGS;
  if (syscall === 'getaddrinfo')
    return `can't listen on ${hostname}: no address is known by this name; set another with ${hostFrom}`;
  if (syscall !== 'listen') return undefined;
  const place = `can't listen on ${address?.includes(':') ? `[${address}]` : address}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `${place}: something listens there already; end it, or set another port with ${portFrom}`;
    case 'EACCES':
      return `${place}: this user may not use that port; set one from 1024 up with ${portFrom}`;
    case 'EADDRNOTAVAIL':
      return `${place}: this machine has no such address; set another with ${hostFrom}`;
    default:
      return `${place}: ${error.message}; the address is set with ${hostFrom}`;
  }
}

type SystemError = Partial<Record<'code' | 'syscall' | 'address' | 'hostname', string>> & { port?: number };

/** Where the address comes from: the server's from its settings, the sandbox's from its command line. */
const SETTINGS = { host: 'DAWATCH_HOST or server.host', port: 'DAWATCH_PORT or server.port' };
const SANDBOX_FLAGS = { host: '--host', port: '--port' };

function apiExitCode(status: number): number {
  return status === 401 || status === 403 || status >= 500 ? ExitCode.server : ExitCode.usage;
}
