import type { UpstreamConfig } from '../config/schema.ts';
import { UpstreamPool } from '../upstream/pool.ts';
import { UpstreamUsers } from '../upstream/users.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { settingName } from './settings.ts';

/** Of a name kept for such purposes: nobody has this address. */
const NOBODY = { name: 'dawatch doctor', email: 'doctor@dawatch.invalid' };

/** Whether the token for lookups of users is taken, by looking up somebody who does not exist. */
export async function checkBearer(
  upstream: UpstreamConfig & { url: string; bearer: string },
  { limitMs, signal }: { limitMs: number; signal: AbortSignal },
): Promise<Finding[]> {
  const about = 'users.default';
  const bearer = settingName('upstreams.default.bearer');
  const timeoutMs = Math.min(limitMs, upstream.timeout_s * 1_000);
  const pool = new UpstreamPool({ url: upstream.url, connections: 1, timeoutMs, now: Date.now });
  const close = () => void pool.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    const users = new UpstreamUsers({
      pool,
      bearer: upstream.bearer,
      getPath: upstream.users.get_path,
      listPath: upstream.users.list_path,
      parameters: upstream.users.parameters,
    });
    const { kind, ...lookup } = await users.getUser(NOBODY);
    if (kind === 'found' || kind === 'not_found') return [ok(about, 'lookups of users work, with the token')];
    if (kind === 'unauthorized' || kind === 'forbidden')
      return [
        problem(about, 'the upstream refuses the token for lookups of users', `set ${bearer} to one that is valid`),
      ];
    const detail = 'detail' in lookup ? lookup.detail : 'too many at once';
    return [
      warning(
        about,
        `lookups of users do not work: ${detail}`,
        'see upstreams.default.users, its paths and parameters',
      ),
    ];
  } finally {
    signal.removeEventListener('abort', close);
    await pool.close();
  }
}
