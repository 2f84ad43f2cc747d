import { ApiError, ConnectionError, isCertificateCode } from '../client/errors.ts';
import { LedgerError } from '../ledger/errors.ts';
import { escapeText } from '../lib/text.ts';
import { ConfigError } from '../operations/config/load.ts';
import { StartError } from '../operations/config/start-error.ts';

export const ExitCode = {
  ok: 0,
  unexpected: 1,
  /** Invalid arguments, input or settings, or the server refused the request. */
  usage: 2,
  /** Not all ended as finalized, or some of the ids to track had already ended. */
  notFinalized: 3,
  mismatch: 3,
  timeout: 4,
  /** The server or its ledger is unavailable, or the credential was refused. */
  server: 5,
} as const;

export const EXIT_CODE_HELP = `
Exit codes:
  0  success              3  a submission ended, but not as finalized, or had ended before \`track\`
  1  unexpected error     4  timeout
  2  invalid arguments, input or settings
  5  the server or its ledger is unavailable, or the credential was refused`;

const MAX_MESSAGE_CHARS = 2_000;

/** An expected failure of a command. Its message is printed to stderr without a stack. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;
  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** `command`: the first word of the command's name. */
export function explain(error: unknown, command: string): { message: string; exitCode: number } {
  if (error instanceof CommandError) return { message: error.message, exitCode: error.exitCode };
  if (error instanceof ConfigError)
    return { message: `${error.message}\n(${CONFIG_ADVICE})`, exitCode: ExitCode.usage };
  if (error instanceof ConnectionError)
    return {
      message: advised(escapeText(error.message, MAX_MESSAGE_CHARS), connectionAdvice(error)),
      exitCode: ExitCode.server,
    };
  if (error instanceof ApiError)
    return { message: explainApi(error, command), exitCode: apiExitCode(error.status) };
  if (error instanceof StartError) return { message: error.message, exitCode: ExitCode.usage };
  if (!(error instanceof Error)) return { message: String(error), exitCode: ExitCode.unexpected };
  // An unusable path is a usage error; a failing disk is not.
  if (error instanceof LedgerError) {
    const isPath = error.problem === 'read_only' || error.problem === 'foreign';
    return { message: error.message, exitCode: isPath ? ExitCode.usage : ExitCode.server };
  }
  // System errors explain themselves; any other error is a defect and needs its stack.
  return 'code' in error
    ? { message: listenText(error, command) ?? error.message, exitCode: ExitCode.usage }
    : { message: error.stack ?? error.message, exitCode: ExitCode.unexpected };
}

/** Escapes the message to one line, because the server is not trusted. */
function explainApi(error: ApiError, command: string): string {
  const message = escapeText(error.message, MAX_MESSAGE_CHARS);
  if (error.status === 401 || error.status === 403) return advised(message, KEY_ADVICE);
  return advised(message, error.status === 404 ? NOT_FOUND_ADVICE[command] : undefined);
}

function connectionAdvice({ status, code }: ConnectionError): string | undefined {
  if (isCertificateCode(code))
    return 'NODE_EXTRA_CA_CERTS names a PEM file of further certificate authorities to trust';
  if (status === undefined)
    return 'is `dawatch serve` running there? Set another address with --server or DAWATCH_URL';
  const isOther = status < 400 || status === 404;
  return isOther ? 'set another address with --server or DAWATCH_URL' : undefined;
}

function advised(message: string, advice: string | undefined): string {
  return advice === undefined ? message : `${message} (${advice})`;
}

const KEY_ADVICE =
  'the key was read from DAWATCH_API_KEY; `dawatch serve` printed a key at its first start, `dawatch token create --role …` creates one';

const CONFIG_ADVICE =
  '`dawatch help settings` describes every setting; DAWATCH_CONFIG selects another file';

const NOT_FOUND_ADVICE: Record<string, string | undefined> = {
  status: '`dawatch list` lists the newest; `dawatch track` adds one',
  wait: '`dawatch track` adds it, with --wait it also waits',
  proof: '`dawatch status` shows the verdict of the chain',
  cancel: '`dawatch list` lists the newest',
  token: '`dawatch token list` lists the tokens',
};

function listenText(error: Error, command: string): string | undefined {
  if (command !== 'serve' && command !== 'sandbox') return undefined;
  const { code, syscall, address, port, hostname } = error as SystemError;
  const { host: hostFrom, port: portFrom } = command === 'sandbox' ? SANDBOX_FLAGS : SETTINGS;
  if (syscall === 'getaddrinfo')
    return `cannot listen on ${hostname}: the name cannot be resolved; set another with ${hostFrom}`;
  if (syscall !== 'listen') return undefined;
  const place = `cannot listen on ${address?.includes(':') ? `[${address}]` : address}:${port}`;
  return code === 'EADDRINUSE'
    ? `${place}: the port is in use; stop the other process, or set another port with ${portFrom}`
    : `${place}: ${error.message}; the address is set with ${hostFrom} and ${portFrom}`;
}

type SystemError = Partial<Record<'code' | 'syscall' | 'address' | 'hostname', string>> & {
  port?: number;
};

/** How to change the address: the server's in its settings, the sandbox's on its command line. */
const SETTINGS = { host: 'DAWATCH_HOST or server.host', port: 'DAWATCH_PORT or server.port' };
const SANDBOX_FLAGS = { host: '--host', port: '--port' };

function apiExitCode(status: number): number {
  return status === 401 || status === 403 || status >= 500 ? ExitCode.server : ExitCode.usage;
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = () => {
      if (stopping) process.exit(130);
      stopping = true;
      resolve();
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}
