import { UpstreamUsers } from '../../access/users.ts';
import { UpstreamClient } from '../../polling/upstream-client.ts';
import type { UpstreamConfig } from '../config/schema.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { settingName } from './settings.ts';

/** A user that cannot exist: the domain .invalid is reserved. */
const NONEXISTENT_USER = { name: 'dawatch doctor', email: 'doctor@dawatch.invalid' };

/** Checks the token for user lookups by looking up a user that does not exist. */
export async function checkBearer(
  upstream: UpstreamConfig & { url: string; bearer: string },
  { limitMs, signal }: { limitMs: number; signal: AbortSignal },
): Promise<Finding[]> {
  const about = 'users.default';
  const bearer = settingName('upstreams.default.bearer');
  const timeoutMs = Math.min(limitMs, upstream.timeout_s * 1_000);
  const client = new UpstreamClient({
    url: upstream.url,
    connections: 1,
    timeoutMs,
    now: Date.now,
  });
  const close = () => void client.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    const users = new UpstreamUsers({
      client,
      bearer: upstream.bearer,
      getPath: upstream.users.get_path,
      listPath: upstream.users.list_path,
      parameters: upstream.users.parameters,
    });
    const { kind, ...lookup } = await users.getUser(NONEXISTENT_USER);
    if (kind === 'found' || kind === 'not_found')
      return [ok(about, 'user lookups work, and the token is accepted')];
    if (kind === 'unauthorized' || kind === 'forbidden')
      return [
        problem(
          about,
          'the upstream refuses the token for user lookups',
          `set ${bearer} to a valid token`,
        ),
      ];
    const detail = 'detail' in lookup ? lookup.detail : 'too many concurrent lookups';
    const advice = 'verify the paths and parameters in upstreams.default.users';
    return [warning(about, `user lookups do not work: ${detail}`, advice)];
  } finally {
    signal.removeEventListener('abort', close);
    await client.close();
  }
}
