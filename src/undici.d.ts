/**
 * Parts of undici are imported by their files: all of it, with fetch, WebSockets and what tests mock it with, is 80 files more to
 * load, a twelfth of a start. They are no promise of undici's, so its version is pinned.
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
