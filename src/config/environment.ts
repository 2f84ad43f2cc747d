import { closest } from './closest.ts';
import { ENVIRONMENT } from './schema.ts';
import { fileVariables } from './secret-files.ts';

/** Variables of the command line, and of the receivers in docs/examples. */
const OTHERS = ['DAWATCH_CONFIG', 'DAWATCH_URL', 'DAWATCH_TOKEN', 'DAWATCH_TOKEN_FILE', 'DAWATCH_WEBHOOK_SECRET'];

const KNOWN = [...Object.keys(ENVIRONMENT), ...Object.keys(fileVariables(ENVIRONMENT)), ...OTHERS];

const SERVICE_LINK =
  /^DAWATCH_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_PORT = /^DAWATCH_(?:[A-Z0-9_]+_)?PORT$/;
const SERVICE_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

type Environment = Record<string, string | undefined>;

/**
 * Returns the variables that configure dawatch, without empty ones and without those that Kubernetes sets for a Service
 * whose name begins with "dawatch" (DAWATCH_SERVICE_HOST, DAWATCH_PORT=tcp://…, DAWATCH_PORT_8080_TCP…).
 */
export function ownVariables(env: Environment): Record<string, string> {
  const own = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[0].startsWith('DAWATCH_') && !!entry[1] && !isServiceLink(entry[0], entry[1]),
  );
  return Object.fromEntries(own);
}

/** Returns one sentence per unknown variable, without its value. Unknown variables are errors, because a misspelt one would have no effect. */
export function unknownVariables(own: Record<string, string>): string[] {
  return Object.keys(own)
    .filter((name) => !KNOWN.includes(name))
    .map((name) => {
      const similar = closest(name, KNOWN);
      const hint = similar === undefined ? 'docs/settings.md lists all variables' : `did you mean ${similar}?`;
      return `${name} is not a variable of dawatch; ${hint}`;
    });
}

function isServiceLink(name: string, value: string): boolean {
  return SERVICE_LINK.test(name) || (SERVICE_PORT.test(name) && SERVICE_ADDRESS.test(value));
}
