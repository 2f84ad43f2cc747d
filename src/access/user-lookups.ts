import type { Config } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';
import { isOwnToken } from './credentials.ts';
import { type UpstreamGet, UpstreamUsers } from './users.ts';

export type Users = Omit<ReturnType<typeof usersOf>, 'useBearer'>;

/** Looks up users at the upstream `default`; tokens of callers are forwarded to no other. */
export function usersOf(config: Config, client: UpstreamGet | undefined) {
  const { bearer, users } = config.upstreams.default;
  refuseOwnBearer(config);
  const failure = {
    kind: 'failure',
    reason: 'network',
    detail: 'no upstream is named default',
  } as const;
  const lookups = new UpstreamUsers({
    client: client ?? { get: async () => failure },
    bearer,
    getPath: users.get_path,
    listPath: users.list_path,
    parameters: users.parameters,
  });
  return {
    lookups: lookups as Pick<UpstreamUsers, 'getUser' | 'listUsers'>,
    useBearer: (next: string | undefined) => lookups.useBearer(next),
    /** Whether callers send the upstream's own token instead of one of dawatch. */
    forwards: bearer === undefined,
    maxLimit: config.users.max_limit,
  };
}

/** Throws a StartError if the bearer for user lookups is a token of dawatch. */
export function refuseOwnBearer({ upstreams }: Config): void {
  const { bearer } = upstreams.default;
  if (bearer !== undefined && isOwnToken(bearer))
    throw new StartError(
      'DAWATCH_UPSTREAM_BEARER is a token of dawatch: set a token issued by the upstream',
    );
}
