/**
 * Parts of undici are imported from their files: the whole package, with fetch, WebSockets and its mocks for tests, would load 87
 * more files, which occupy 10 MiB of an idle server's 120. These files are not part of undici's public interface, so its version is
 * pinned.
 */
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
declare module 'undici/lib/dispatcher/agent.js' {
  export { Agent as default } from 'undici';
}
declare module 'undici/lib/core/connect.js' {
  export { buildConnector as default } from 'undici';
}
declare module 'undici/lib/core/errors.js' {
  export { errors as default } from 'undici';
}
