import dns, { type LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';

type Callback = (
  error: NodeJS.ErrnoException | null,
  address?: string | LookupAddress[],
  family?: number,
) => void;

/**
 * Loaded into a server with --import: upstream.test resolves to 127.0.0.1, or its lookup fails with
 * the content of the file FRAGILE_DNS (ENOTFOUND, EAI_AGAIN; "silent": the lookup never completes).
 */
const file = process.env.FRAGILE_DNS ?? '';
const { lookup } = dns;

function fragile(name: string, options: { all?: boolean }, callback: Callback): void {
  if (name !== 'upstream.test') return void lookup(name, options, callback as never);
  const code = readFileSync(file, 'utf8').trim();
  if (code === 'silent') return;
  if (code !== '')
    process.nextTick(
      callback,
      Object.assign(new Error(`getaddrinfo ${code} ${name}`), { code, hostname: name }),
    );
  else if (options.all) process.nextTick(callback, null, [{ address: '127.0.0.1', family: 4 }]);
  else process.nextTick(callback, null, '127.0.0.1', 4);
}

dns.lookup = fragile as typeof lookup;
