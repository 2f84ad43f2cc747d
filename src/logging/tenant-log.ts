import type { LogLevel } from './events/fields.ts';
import type { Log } from './logger.ts';

/** Returns a log that adds the name of a tenant to every line. */
export function logOfTenant(log: Log, tenant: string): Log {
  const at =
    (level: LogLevel) =>
    (...[first, event]: [object | string, string?]) =>
      (log[level] as (fields: object, name: string) => void).call(
        log,
        { ...(typeof first === 'string' ? {} : first), tenant },
        typeof first === 'string' ? first : (event ?? ''),
      );
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    isLevelEnabled: (level) => log.isLevelEnabled(level),
  } as Log;
}
